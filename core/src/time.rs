//! Times as documents write them: RFC 3339, UTC, seconds. Texts of this form compare as times do. The clock is the
//! caller's.

/// Whether `text` has the form of a time.
#[must_use]
pub fn is_time(text: &str) -> bool {
    let form = b"0000-00-00T00:00:00Z";
    text.len() == form.len()
        && text
            .bytes()
            .zip(form)
            .all(|(b, f)| if *f == b'0' { b.is_ascii_digit() } else { b == *f })
}

/// Writes a time given in seconds since 1970-01-01T00:00:00Z; what lies after the year 9999 is written as its end.
#[must_use]
pub fn format_time(unix_seconds: u64) -> String {
    const END: u64 = 253_402_300_799;
    let seconds = unix_seconds.min(END);
    let (year, month, day) = civil_from_days(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The proleptic Gregorian date, `days` after 1970-01-01: years begin in March, so that the leap day is the last.
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_210_096, "2024-02-29T12:34:56Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (1_767_323_045, "2026-01-02T03:04:05Z"),
            (4_102_444_800, "2100-01-01T00:00:00Z"),
            (u64::MAX, "9999-12-31T23:59:59Z"),
        ];
        for (seconds, text) in cases {
            assert_eq!(format_time(seconds), text);
            assert!(is_time(text));
        }
        for bad in [
            "",
            "2026-01-02T03:04:05",
            "2026-01-02T03:04:05+",
            "2026-01-02 03:04:05Z",
            "x026-01-02T03:04:05Z",
        ] {
            assert!(!is_time(bad), "{bad}");
        }
    }
}
