//! Whether to colour, how many colours there are, and the two styles that reports use.

use std::fmt;

/// The user's wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set or TERM is "dumb"
    Auto,
    /// Also into pipes and files
    Always,
    /// Never
    Never,
}

/// What the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Plain text.
    Plain,
    /// The 256 colours of xterm.
    Indexed,
    /// 24-bit colour.
    True,
}

impl Depth {
    /// What to use, from the wish, the kind of output and the environment.
    pub(crate) fn choose(
        wish: Colour,
        terminal: bool,
        env: impl Fn(&str) -> Option<String>,
    ) -> Depth {
        let set = |name| env(name).is_some_and(|value| !value.is_empty());
        let wanted = match wish {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => terminal && !set("NO_COLOR") && env("TERM").is_none_or(|t| t != "dumb"),
        };
        match env("COLORTERM").as_deref() {
            _ if !wanted => Depth::Plain,
            Some("truecolor" | "24bit") => Depth::True,
            _ if env("TERM").is_some_and(|t| t.ends_with("-direct")) => Depth::True,
            _ => Depth::Indexed,
        }
    }

    /// A heading.
    pub(crate) fn bold(self, text: impl fmt::Display) -> String {
        self.styled("1", text)
    }

    /// Something of less weight.
    pub(crate) fn faint(self, text: impl fmt::Display) -> String {
        self.styled("2", text)
    }

    /// Something good.
    pub(crate) fn good(self, text: impl fmt::Display) -> String {
        self.styled("32", text)
    }

    /// Something wrong.
    pub(crate) fn bad(self, text: impl fmt::Display) -> String {
        self.styled("31", text)
    }

    fn styled(self, code: &str, text: impl fmt::Display) -> String {
        match self {
            Depth::Plain => text.to_string(),
            _ => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

/// A colour of red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rgb(pub(crate) u8, pub(crate) u8, pub(crate) u8);

/// From troughs over the calm sea to crests at equal steps. The ends are light and the middle is
/// dark, one side cool and the other warm, which the colour-blind tell apart.
const WAVES: [Rgb; 7] = [
    Rgb(0xb8, 0xf2, 0xff),
    Rgb(0x35, 0xa9, 0xe0),
    Rgb(0x1d, 0x5f, 0xa8),
    Rgb(0x12, 0x2c, 0x4f),
    Rgb(0xa3, 0x3b, 0x2c),
    Rgb(0xf0, 0x8a, 0x24),
    Rgb(0xff, 0xf0, 0xa8),
];

impl Rgb {
    /// Land: the colour of sand at dusk.
    pub(crate) const LAND: Rgb = Rgb(0x8c, 0x86, 0x70);

    /// The colour of a share between 0 and 1, where 0.5 is the calm sea.
    pub(crate) fn waves(share: f64) -> Rgb {
        let last = WAVES.len() - 1;
        let place = share.clamp(0.0, 1.0) * last as f64;
        let below = (place as usize).min(last - 1);
        let (a, b) = (WAVES[below], WAVES[below + 1]);
        let part = place - below as f64;
        let mix =
            |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * part).round() as u8;
        Rgb(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
    }

    /// The nearest of the 216 colours of xterm's cube or its 24 greys.
    pub(crate) fn indexed(self) -> u8 {
        const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
        let far = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
        let step =
            |value: u8| (0..6u8).min_by_key(|i| far(STEPS[usize::from(*i)], value)).unwrap_or(0);
        let (r, g, b) = (step(self.0), step(self.1), step(self.2));
        let away = |r, g, b| far(r, self.0) + far(g, self.1) + far(b, self.2);
        let cube = away(STEPS[usize::from(r)], STEPS[usize::from(g)], STEPS[usize::from(b)]);
        let mean = (u32::from(self.0) + u32::from(self.1) + u32::from(self.2)) / 3;
        let grey = (mean.saturating_sub(3) / 10).min(23) as u8;
        let level = 8 + 10 * grey;
        if away(level, level, level) < cube { 232 + grey } else { 16 + 36 * r + 6 * g + b }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(wish: Colour, terminal: bool, env: &[(&str, &str)]) -> Depth {
        Depth::choose(wish, terminal, |name| {
            env.iter().find(|(n, _)| *n == name).map(|(_, value)| value.to_string())
        })
    }

    #[test]
    fn no_color_and_pipes_are_plain_unless_colour_is_forced() {
        assert_eq!(depth(Colour::Auto, true, &[]), Depth::Indexed);
        assert_eq!(depth(Colour::Auto, false, &[]), Depth::Plain);
        assert_eq!(depth(Colour::Auto, true, &[("NO_COLOR", "1")]), Depth::Plain);
        assert_eq!(depth(Colour::Auto, true, &[("NO_COLOR", "")]), Depth::Indexed);
        assert_eq!(depth(Colour::Auto, true, &[("TERM", "dumb")]), Depth::Plain);
        assert_eq!(depth(Colour::Always, false, &[("NO_COLOR", "1")]), Depth::Indexed);
        assert_eq!(depth(Colour::Never, true, &[]), Depth::Plain);
        assert_eq!(depth(Colour::Auto, true, &[("COLORTERM", "truecolor")]), Depth::True);
    }

    #[test]
    fn the_map_runs_from_troughs_over_the_calm_sea_to_crests() {
        assert_eq!([0.0, 0.5, 1.0].map(Rgb::waves), [WAVES[0], WAVES[3], WAVES[6]]);
        assert_eq!(Rgb::waves(-3.0), WAVES[0]);
    }

    #[test]
    fn the_256_colours_hold_their_own_corners() {
        assert_eq!(Rgb(0, 0, 0).indexed(), 16);
        assert_eq!(Rgb(255, 255, 255).indexed(), 231);
        assert_eq!(Rgb(255, 0, 0).indexed(), 196);
        assert_eq!(Rgb(8, 8, 8).indexed(), 232);
    }
}
