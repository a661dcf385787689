//! Units of time: `days since 1970-01-01 00:00:00`, read as ncdump reads them.

use super::calendar::{Calendar, Moment};

/// A unit, a calendar and the moment that is zero.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TimeUnits {
    unit: Unit,
    calendar: Calendar,
    base: Moment,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    /// A number of months: 1, 3 (a season) or 12.
    Months(f64),
}

impl TimeUnits {
    /// The units that the attributes `units` and `calendar` describe, if they are of time.
    pub(super) fn parse(units: &str, calendar: &str) -> Option<TimeUnits> {
        let calendar = Calendar::named(calendar);
        let units = units.split('\0').next().unwrap_or_default().trim_start();
        let (word, rest) = take_word(units);
        let unit = Unit::named(word)?;
        if matches!(unit, Unit::Months(n) if n == 12.0) && !calendar.has_years() {
            return None;
        }
        let rest = rest.trim_start().strip_prefix("since")?;
        let (date, rest) = take_word(rest.trim_start());
        if date.is_empty() {
            return None;
        }
        let (date, clock) = match date.split_once('T') {
            Some((date, clock)) => (date, clock),
            None => (date, take_word(rest.trim_start()).0),
        };
        let base = base_moment(calendar, &format!("{date} {clock}"))?;
        Some(TimeUnits { unit, calendar, base })
    }

    /// The value as a date, with as much of the time of day as is not zero.
    pub(super) fn date(&self, value: f64, separator: char) -> Option<String> {
        if !value.is_finite() {
            return None;
        }
        let moment = match self.unit {
            Unit::Months(_) if value == 0.0 => self.base,
            Unit::Months(months) => {
                let nudge = if value < 0.0 { -1e-10 } else { 1e-10 };
                let months = months * value + nudge;
                if months.abs() > 1e11 {
                    return None;
                }
                let calendar = match self.calendar {
                    Calendar::Mixed => Calendar::Gregorian,
                    calendar => calendar,
                };
                calendar.add_months(self.base, months as i64)?
            }
            Unit::Second => self.calendar.add_hours(self.base, value / 3600.0)?,
            Unit::Minute => self.calendar.add_hours(self.base, value / 60.0)?,
            Unit::Hour => self.calendar.add_hours(self.base, value)?,
            Unit::Day => self.calendar.add_hours(self.base, 24.0 * value)?,
            Unit::Week => self.calendar.add_hours(self.base, 168.0 * value)?,
        };
        iso(self.calendar, moment, separator)
    }
}

impl Unit {
    fn named(word: &str) -> Option<Unit> {
        let word = word.to_ascii_lowercase();
        let is = |long: &str, short: &str| word.starts_with(long) || word == short;
        Some(match () {
            _ if is("sec", "s") => Unit::Second,
            _ if is("min", "mn") => Unit::Minute,
            _ if is("hour", "hr") => Unit::Hour,
            _ if is("day", "dy") => Unit::Day,
            _ if is("week", "wk") => Unit::Week,
            _ if is("month", "mo") => Unit::Months(1.0),
            _ if is("season", "season") => Unit::Months(3.0),
            _ if is("year", "yr") => Unit::Months(12.0),
            _ => return None,
        })
    }
}

fn take_word(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| c.is_ascii_whitespace() || c == '\u{b}').unwrap_or(text.len());
    text.split_at(end)
}

/// The moment in `year-month-day hour:minute:second`, of which anything may be missing from the
/// end. A part that is out of its range ends the reading where it stands.
fn base_moment(calendar: Calendar, text: &str) -> Option<Moment> {
    let mut moment = Moment { year: 0, month: 1, day: 1, hour: 0.0 };
    let mut scan = Scan { rest: text };
    let numbers = scan.numbers(if calendar.has_years() { 3 } else { 2 });
    let whole = numbers.len() == if calendar.has_years() { 3 } else { 2 };
    let mut numbers = numbers.into_iter();
    if calendar.has_years()
        && let Some(year) = numbers.next()
    {
        // Beyond this ncdump's count of days overflows.
        if year.abs() > 5_000_000 {
            return None;
        }
        moment.year = year;
    }
    moment.month = numbers.next().unwrap_or(1);
    moment.day = numbers.next().unwrap_or(1);
    if !whole {
        return Some(moment);
    }
    let Some(hour) = scan.integer() else { return Some(moment) };
    if !(0..=23).contains(&hour) {
        return Some(moment);
    }
    moment.hour = hour as f64;
    let Some(minute) = scan.after(':').and_then(|()| scan.integer()) else { return Some(moment) };
    if !(0..=59).contains(&minute) {
        return Some(moment);
    }
    moment.hour += minute as f64 / 60.0;
    let Some(second) = scan.after(':').and_then(|()| scan.float()) else { return Some(moment) };
    if !(0.0..=60.0).contains(&second) {
        return Some(moment);
    }
    moment.hour += second / 3600.0;
    Some(moment)
}

/// Reads numbers as scanf does: white space before them is skipped.
struct Scan<'a> {
    rest: &'a str,
}

impl Scan<'_> {
    /// Up to `most` numbers with dashes between them.
    fn numbers(&mut self, most: usize) -> Vec<i64> {
        let mut numbers = Vec::new();
        while numbers.len() < most {
            if !numbers.is_empty() && self.after('-').is_none() {
                break;
            }
            let Some(number) = self.integer() else { break };
            // Months and days are read into 16 bits.
            let short = most - numbers.len() <= 2;
            numbers.push(if short { i64::from(number as i16) } else { number });
        }
        numbers
    }

    fn after(&mut self, separator: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(separator)?;
        Some(())
    }

    fn integer(&mut self) -> Option<i64> {
        let text = self.rest.trim_start();
        let sign = text.len() - text.trim_start_matches(['+', '-']).len();
        if sign > 1 {
            return None;
        }
        let end = text[sign..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |p| p + sign);
        let number = text[..end].parse().ok()?;
        self.rest = &text[end..];
        Some(number)
    }

    fn float(&mut self) -> Option<f64> {
        let text = self.rest.trim_start();
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let number = text[..end].parse().ok()?;
        self.rest = &text[end..];
        Some(number)
    }
}

/// The date, and the time of day as far as it is not zero.
fn iso(calendar: Calendar, moment: Moment, separator: char) -> Option<String> {
    let Moment { year, month, day, hour } = moment;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(0.0..=24.0).contains(&hour) {
        return None;
    }
    let mut date = String::new();
    if calendar.has_years() {
        if year < 0 {
            date.push('-');
        }
        date += &format!("{:04}-", year.unsigned_abs());
    }
    date += &format!("{month:02}-{day:02}");
    // Half a microsecond short of a whole second, minute or hour is a whole one.
    const SECOND: f64 = 0.5e-6;
    const MINUTE: f64 = SECOND / 60.0;
    const HOUR: f64 = MINUTE / 60.0;
    let hours = (hour + HOUR).trunc();
    let rest = 60.0 * (hour - hours);
    let minutes = (rest + MINUTE).trunc();
    let seconds = 60.0 * (rest - minutes);
    let whole_seconds = (seconds + SECOND).trunc();
    let fraction = seconds - whole_seconds >= SECOND;
    if !fraction && whole_seconds == 0.0 && minutes == 0.0 && hours == 0.0 {
        return Some(date);
    }
    date.push(separator);
    date += &format!("{:02}", hours as i64);
    if fraction || whole_seconds != 0.0 || minutes != 0.0 {
        date += &format!(":{:02}", minutes as i64);
    }
    if fraction {
        date += &format!(":{seconds:.6}");
    } else if whole_seconds != 0.0 {
        date += &format!(":{:02}", whole_seconds as i64);
    }
    Some(date)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dates(units: &str, calendar: &str, values: &[f64]) -> Vec<String> {
        let units = TimeUnits::parse(units, calendar).expect(units);
        values.iter().map(|&v| units.date(v, ' ').unwrap_or_default()).collect()
    }

    // The expected dates are ncdump 4.9.0's.

    #[test]
    fn calendars_have_their_own_years() {
        let days = [0.0, 30.0, 59.0, 60.0, 364.0, 365.0, 366.0, 400.0];
        let all_leap = dates("days since 2000-01-01", "366_day", &days);
        assert_eq!(all_leap[2], "2000-02-29");
        assert_eq!(all_leap[4..], ["2000-12-30", "2000-12-31", "2001-01-01", "2001-02-04"]);
        let months = [0.0, 1.0, 2.0, 3.7, -1.0, 12.0, 13.0, 100.0];
        assert_eq!(
            dates("months since 1850-1-15", "360_day", &months),
            [
                "1850-01-15",
                "1850-02-01",
                "1850-03-01",
                "1850-04-01",
                "1849-12-01",
                "1851-01-01",
                "1851-02-01",
                "1858-05-01"
            ]
        );
        assert_eq!(
            dates("days since 1-15 12:00", "none", &[0.0, 3.7, -1.0, 400.0]),
            ["01-15 12", "01-19 04:48", "01-14 12", "02-19 12"]
        );
        assert_eq!(
            dates("hours since 1-1-1 00:00:0.0", "gregorian", &[0.0, 1.0, 13864560.25, 1e7]),
            ["0001-01-01", "0001-01-01 01", "1582-08-19 00:15", "1141-10-09 16"]
        );
    }

    #[test]
    fn fractions_of_seconds_show_their_rounding() {
        assert_eq!(
            dates("Days since 2000-01-01T12:30:15.5Z", "noleap", &[0.0, 59.0, 400.123]),
            [
                "2000-01-01 12:30:15.500000",
                "2000-03-01 12:30:15.500000",
                "2001-02-05 15:27:22.700000"
            ]
        );
        assert_eq!(
            dates("days since 0-0-0", "standard", &[0.0, 3.7, -1.0]),
            ["-0001-12-31", "0000-01-03 16:48:0.000003", "-0001-12-30"]
        );
        assert_eq!(
            dates("seconds since 1970-1-1", "julian", &[1.0, 3.7, -1.0, 100.0]),
            [
                "1970-01-01 00:00:01",
                "1970-01-01 00:00:3.700000",
                "1969-12-31 23:59:59",
                "1970-01-01 00:01:40"
            ]
        );
    }

    #[test]
    fn what_is_not_time_is_refused() {
        for (units, calendar) in [
            ("m", ""),
            ("days", ""),
            ("days as %Y%m%d.%f", ""),
            ("years since 1850-1-15", "none"),
            ("days since 99999999999999-1-1", ""),
        ] {
            assert_eq!(TimeUnits::parse(units, calendar), None, "{units}");
        }
    }

    #[test]
    fn far_values_are_not_dates() {
        let units = TimeUnits::parse("days since 2000-1-1", "").unwrap();
        for value in [1e12, -1e300, f64::NAN, f64::INFINITY] {
            assert_eq!(units.date(value, ' '), None);
        }
        let units = TimeUnits::parse("years since 2000-1-1", "").unwrap();
        assert_eq!(units.date(1e300, ' '), None);
    }
}
