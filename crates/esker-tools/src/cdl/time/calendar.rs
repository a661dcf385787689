//! Calendars: days counted from 1970, and back.

/// How years and months are made up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Calendar {
    /// Julian until 4 October 1582, Gregorian from the next day on, which was the 15th.
    Mixed,
    /// Gregorian for ever.
    Gregorian,
    /// Julian for ever.
    Julian,
    /// 365 days in every year.
    NoLeap,
    /// 366 days in every year.
    AllLeap,
    /// 12 months of 30 days.
    Days360,
    /// One year of 365 days, again and again; dates have no year.
    Climatology,
}

/// A moment: hours count from the beginning of the day.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) struct Moment {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
    pub(super) hour: f64,
}

/// Days of each month, and before it, in a year without leap day.
const MONTH_DAYS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const DAYS_BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

/// Hours further away than this are not dates (cdtime counts days in a C int).
const FAR: f64 = 24.0 * 2_147_483_000.0;

/// The days on which the mixed calendar changes: the last by Julian count is the first by
/// Gregorian.
const JULIAN_END: Moment = Moment { year: 1582, month: 10, day: 5, hour: 0.0 };
const GREGORIAN_START: Moment = Moment { year: 1582, month: 10, day: 15, hour: 0.0 };

/// Where cdtime counts from when it adds hours.
const EPOCH_1979: Moment = Moment { year: 1979, month: 1, day: 1, hour: 0.0 };

impl Calendar {
    /// The calendar of this name. As in ncdump a beginning of a name will do, the names are
    /// tried in this order, and whatever is unknown is the mixed calendar.
    pub(super) fn named(name: &str) -> Calendar {
        const NAMES: [(&str, Calendar); 12] = [
            ("gregorian", Calendar::Mixed),
            ("standard", Calendar::Mixed),
            ("proleptic_gregorian", Calendar::Gregorian),
            ("noleap", Calendar::NoLeap),
            ("no_leap", Calendar::NoLeap),
            ("365_day", Calendar::NoLeap),
            ("allleap", Calendar::AllLeap),
            ("all_leap", Calendar::AllLeap),
            ("366_day", Calendar::AllLeap),
            ("360_day", Calendar::Days360),
            ("julian", Calendar::Julian),
            ("none", Calendar::Climatology),
        ];
        let matches =
            |known: &str| known.starts_with(name) || name.split('\0').next() == Some(known);
        let found = NAMES.iter().find(|(known, _)| !name.is_empty() && matches(known));
        found.map_or(Calendar::Mixed, |(_, calendar)| *calendar)
    }

    /// Whether dates have a year.
    pub(super) fn has_years(self) -> bool {
        self != Calendar::Climatology
    }

    fn is_leap(self, year: i64) -> bool {
        match self {
            Calendar::AllLeap => true,
            Calendar::NoLeap | Calendar::Days360 | Calendar::Climatology => false,
            Calendar::Julian => year % 4 == 0,
            Calendar::Gregorian | Calendar::Mixed => {
                year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
            }
        }
    }

    /// Days in the 400 years after which every calendar repeats itself.
    fn cycle_days(self) -> i64 {
        match self {
            Calendar::Days360 => 360 * 400,
            Calendar::AllLeap => 366 * 400,
            Calendar::NoLeap | Calendar::Climatology => 365 * 400,
            Calendar::Julian => 365 * 400 + 100,
            Calendar::Gregorian | Calendar::Mixed => 365 * 400 + 97,
        }
    }

    /// Days from the beginning of the year 0 to that of another.
    fn days_to_year(self, year: i64) -> i64 {
        let leaps = |every: i64| (year - 1).div_euclid(every) + 1;
        match self {
            Calendar::Days360 => 360 * year,
            Calendar::AllLeap => 366 * year,
            Calendar::NoLeap | Calendar::Climatology => 365 * year,
            Calendar::Julian => 365 * year + leaps(4),
            Calendar::Gregorian | Calendar::Mixed => {
                365 * year + leaps(4) - leaps(100) + leaps(400)
            }
        }
    }

    fn base_year(self) -> i64 {
        if self.has_years() { 1970 } else { 0 }
    }

    /// Hours since the beginning of the base year.
    pub(super) fn hours(self, moment: Moment) -> f64 {
        let year = if self.has_years() { moment.year } else { 0 };
        // An impossible month counts as the first.
        let month = if (1..=12).contains(&moment.month) { moment.month } else { 1 };
        let leap = i64::from(self.is_leap(year) && month > 2);
        let before = if self == Calendar::Days360 {
            30 * (month - 1)
        } else {
            DAYS_BEFORE[(month - 1) as usize]
        };
        let day_of_year = before + moment.day + leap;
        let days = self.days_to_year(year) - self.days_to_year(self.base_year());
        (days + day_of_year - 1) as f64 * 24.0 + moment.hour
    }

    /// The moment so many hours after the beginning of the base year; none when that is too far.
    pub(super) fn moment(self, hours: f64) -> Option<Moment> {
        if hours.is_nan() || hours.abs() > FAR {
            return None;
        }
        let mut day = (hours / 24.0).floor() as i64 + 1;
        let mut hour = hours - (day - 1) as f64 * 24.0;
        if hour >= 24.0 {
            day += 1;
            hour -= 24.0;
        }
        // Counted from the year 0; the guess is right or one off.
        let since = day - 1 + self.days_to_year(self.base_year());
        let mut year = (since * 400).div_euclid(self.cycle_days());
        while self.days_to_year(year) > since {
            year -= 1;
        }
        while self.days_to_year(year + 1) <= since {
            year += 1;
        }
        day = since - self.days_to_year(year) + 1;
        let mut month = 1;
        for (index, &days) in MONTH_DAYS.iter().enumerate() {
            month = index as i64 + 1;
            let days = match self {
                Calendar::Days360 => 30,
                _ if index == 1 && self.is_leap(year) => 29,
                _ => days,
            };
            if day <= days {
                break;
            }
            day -= days;
        }
        let year = if self.has_years() { year } else { 0 };
        Some(Moment { year, month, day, hour })
    }

    /// The moment so many hours after another one.
    pub(super) fn add_hours(self, from: Moment, hours: f64) -> Option<Moment> {
        if self != Calendar::Mixed {
            return self.moment(self.hours(from) + hours);
        }
        if from < GREGORIAN_START {
            let until = Calendar::Julian.between(from, JULIAN_END);
            if hours <= until {
                Calendar::Julian.add_from_1979(from, hours)
            } else {
                Calendar::Gregorian.add_from_1979(GREGORIAN_START, hours - until)
            }
        } else {
            let until = Calendar::Gregorian.between(from, GREGORIAN_START);
            if hours > until {
                Calendar::Gregorian.add_from_1979(from, hours)
            } else {
                Calendar::Julian.add_from_1979(JULIAN_END, hours - until)
            }
        }
    }

    /// Hours from one moment to another, both counted from 1979.
    fn between(self, from: Moment, to: Moment) -> f64 {
        let epoch = self.hours(EPOCH_1979);
        (self.hours(to) - epoch) - (self.hours(from) - epoch)
    }

    fn add_from_1979(self, from: Moment, hours: f64) -> Option<Moment> {
        let epoch = self.hours(EPOCH_1979);
        let since = (self.hours(from) - epoch) + hours;
        self.moment(epoch + since)
    }

    /// The first day of the month so many months after another moment's.
    pub(super) fn add_months(self, from: Moment, months: i64) -> Option<Moment> {
        // Cdtime takes the way over hours here too, which makes days beyond a month's end
        // count on into the next.
        let from = self.moment(self.hours(from))?;
        let months = months.checked_add(from.month - 1)?;
        let year = from.year.checked_add(months.div_euclid(12))?;
        if year.abs() > FAR as i64 / (24 * 367) {
            return None;
        }
        let first = Moment { year, month: months.rem_euclid(12) + 1, day: 1, hour: 0.0 };
        self.moment(self.hours(first))
    }
}
