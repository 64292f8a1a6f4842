//! Formats as C's `printf` does.
//!
//! A kernel passes the address of the format and of a block in which the arguments lie one after another, each naturally
//! aligned: `int` and smaller in 4 bytes, the others in 8. As on NVIDIA's driver, what CUDA has no conversion for stands for itself: lengths of `z`, `t`, `j`
//! and `L`, and a precision that is an argument.

use super::guest;

/// Appends the text; answers the number of arguments used, or `None` if the format or an argument cannot be read.
pub fn format(text: &mut Vec<u8>, format: u64, arguments: u64) -> Option<u32> {
    let format = guest::string(format)?;
    let mut arguments = Arguments { next: arguments, count: 0 };
    let mut rest = &format[..];
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        text.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        match Conversion::parse(rest) {
            Some((conversion, after)) if arguments.count + conversion.takes() <= MOST_ARGUMENTS => {
                rest = after;
                conversion.print(text, &mut arguments)?;
            }
            // Beyond the last argument that is passed on, conversions stand for themselves.
            Some((_, after)) => {
                text.push(b'%');
                text.extend_from_slice(&rest[..rest.len() - after.len()]);
                rest = after;
            }
            // Not a conversion: it stands for itself.
            None => text.push(b'%'),
        }
    }
    text.extend_from_slice(rest);
    Some(arguments.count)
}

/// Arguments of a call at most.
const MOST_ARGUMENTS: u32 = 32;

/// The arguments that have not been used.
struct Arguments {
    next: u64,
    count: u32,
}

impl Arguments {
    fn take(&mut self, size: u64) -> Option<u64> {
        let address = self.next.checked_next_multiple_of(size)?;
        let value = guest::number(address, size)?;
        self.next = address + size;
        self.count += 1;
        Some(value)
    }
}

/// `%[flags][width][.precision][length]letter`
struct Conversion {
    /// Those of `-+ #0` that are given.
    flags: Vec<u8>,
    width: Option<Number>,
    precision: Option<Number>,
    length: Length,
    letter: u8,
}

#[derive(Clone, Copy)]
enum Number {
    Given(i32),
    /// `*`
    Argument,
}

#[derive(Clone, Copy, PartialEq)]
enum Length {
    Char,
    Short,
    Int,
    Long,
}

impl Conversion {
    /// Reads what follows a `%`.
    fn parse(mut rest: &[u8]) -> Option<(Conversion, &[u8])> {
        let whole = rest.len();
        let flags = rest.iter().take_while(|byte| b"-+ #0".contains(byte)).count();
        let (flags, after) = rest.split_at(flags);
        rest = after;
        let width = Number::parse(&mut rest);
        let mut precision = None;
        if let Some(after) = rest.strip_prefix(b".") {
            rest = after;
            if rest.starts_with(b"*") {
                return None;
            }
            precision = Some(Number::parse(&mut rest).unwrap_or(Number::Given(0)));
        }
        let lengths: [(&[u8], Length); 4] =
            [(b"hh", Length::Char), (b"h", Length::Short), (b"ll", Length::Long), (b"l", Length::Long)];
        let mut length = Length::Int;
        if let Some((prefix, found)) = lengths.into_iter().find(|(prefix, _)| rest.starts_with(prefix)) {
            rest = &rest[prefix.len()..];
            length = found;
        }
        let (&letter, rest) = rest.split_first()?;
        // A percent sign is one only right behind another.
        let known = b"diuoxXcspfFeEgGaA".contains(&letter) || (letter == b'%' && rest.len() + 1 == whole);
        known.then(|| (Conversion { flags: flags.to_vec(), width, precision, length, letter }, rest))
    }

    fn print(self, text: &mut Vec<u8>, arguments: &mut Arguments) -> Option<()> {
        let mut resolve = |number: Option<Number>| match number {
            Some(Number::Argument) => arguments.take(4).map(|value| Some(value as i32)),
            Some(Number::Given(value)) => Some(Some(value)),
            None => Some(None),
        };
        let width = resolve(self.width)?;
        // A negative precision counts as none.
        let precision = resolve(self.precision)?.filter(|precision| *precision >= 0);
        let spec = |length: &str| self.spec(width, precision, length);
        match self.letter {
            b'%' => text.push(b'%'),
            b'd' | b'i' => {
                let value = self.integer(arguments)? as i64;
                let value = match self.length {
                    Length::Char => (value as i8).into(),
                    Length::Short => (value as i16).into(),
                    Length::Int => (value as i32).into(),
                    Length::Long => value,
                };
                print_c(text, &spec("ll"), |buffer, len, spec| {
                    // SAFETY: a buffer of `len` bytes, and the argument that the specification asks for.
                    unsafe { libc::snprintf(buffer, len, spec, value) }
                });
            }
            b'u' | b'o' | b'x' | b'X' => {
                let value = self.integer(arguments)?;
                let value = match self.length {
                    Length::Char => value & 0xff,
                    Length::Short => value & 0xffff,
                    Length::Int | Length::Long => value,
                };
                print_c(text, &spec("ll"), |buffer, len, spec| {
                    // SAFETY: as above.
                    unsafe { libc::snprintf(buffer, len, spec, value) }
                });
            }
            b'p' => {
                let value = arguments.take(8)?;
                print_c(text, &spec(""), |buffer, len, spec| {
                    // SAFETY: as above; the pointer is only shown.
                    unsafe { libc::snprintf(buffer, len, spec, value as *const u8) }
                });
            }
            b'c' => {
                let value = arguments.take(4)? as u8;
                pad(text, &[value], width, self.flags.contains(&b'-'));
            }
            b's' => {
                let address = arguments.take(8)?;
                let string = if address == 0 { b"(null)".to_vec() } else { guest::string(address)? };
                let shown = precision.map_or(string.len(), |precision| string.len().min(precision as usize));
                pad(text, &string[..shown], width, self.flags.contains(&b'-'));
            }
            _ => {
                let value = f64::from_bits(arguments.take(8)?);
                print_c(text, &spec(""), |buffer, len, spec| {
                    // SAFETY: as above.
                    unsafe { libc::snprintf(buffer, len, spec, value) }
                });
            }
        }
        Some(())
    }

    /// How many arguments it uses.
    fn takes(&self) -> u32 {
        let star = |number: Option<Number>| u32::from(matches!(number, Some(Number::Argument)));
        star(self.width) + star(self.precision) + u32::from(self.letter != b'%')
    }

    fn integer(&self, arguments: &mut Arguments) -> Option<u64> {
        arguments.take(if self.length == Length::Long { 8 } else { 4 })
    }

    /// The specification for the C library, with a NUL.
    fn spec(&self, width: Option<i32>, precision: Option<i32>, length: &str) -> Vec<u8> {
        let mut spec = vec![b'%'];
        spec.extend_from_slice(&self.flags);
        // A negative width from an argument is a `-` and a width, which is how it is written here.
        if let Some(width) = width {
            spec.extend_from_slice(width.clamp(-WIDEST, WIDEST).to_string().as_bytes());
        }
        if let Some(precision) = precision {
            spec.extend_from_slice(format!(".{}", precision.min(WIDEST)).as_bytes());
        }
        spec.extend_from_slice(length.as_bytes());
        spec.push(self.letter);
        spec.push(0);
        spec
    }
}

/// Widest field and largest precision that is honoured.
const WIDEST: i32 = 1 << 16;

impl Number {
    fn parse(rest: &mut &[u8]) -> Option<Number> {
        if let Some(after) = rest.strip_prefix(b"*") {
            *rest = after;
            return Some(Number::Argument);
        }
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, after) = rest.split_at(digits);
        *rest = after;
        let value = number
            .iter()
            .fold(0_i32, |value, digit| value.saturating_mul(10).saturating_add((digit - b'0').into()));
        (digits > 0).then_some(Number::Given(value))
    }
}

/// Has the C library print: first into a small buffer, then into one as large as it says.
fn print_c(
    text: &mut Vec<u8>,
    spec: &[u8],
    print: impl Fn(*mut libc::c_char, libc::size_t, *const libc::c_char) -> libc::c_int,
) {
    let mut buffer = vec![0_u8; 128];
    loop {
        let len = print(buffer.as_mut_ptr().cast(), buffer.len(), spec.as_ptr().cast());
        let Ok(len) = usize::try_from(len) else { return };
        if len < buffer.len() {
            text.extend_from_slice(&buffer[..len]);
            return;
        }
        buffer.resize(len + 1, 0);
    }
}

fn pad(text: &mut Vec<u8>, bytes: &[u8], width: Option<i32>, left: bool) {
    let width = width.unwrap_or(0);
    let left = left || width < 0;
    let padding = (width.unsigned_abs().min(WIDEST as u32) as usize).saturating_sub(bytes.len());
    if !left {
        text.resize(text.len() + padding, b' ');
    }
    text.extend_from_slice(bytes);
    if left {
        text.resize(text.len() + padding, b' ');
    }
}

#[cfg(test)]
#[cfg(not(miri))] // the C library's printf and guarded accesses
mod tests {
    enum Arg {
        Int(i32),
        Long(i64),
        Double(f64),
        Text(&'static std::ffi::CStr),
    }
    use Arg::{Double, Int, Long, Text};

    fn printed(format: &std::ffi::CStr, arguments: &[Arg]) -> (String, Option<u32>) {
        let mut block: Vec<u8> = Vec::new();
        for argument in arguments {
            let (bytes, size) = match argument {
                Int(value) => (value.to_le_bytes().to_vec(), 4),
                Long(value) => (value.to_le_bytes().to_vec(), 8),
                Double(value) => (value.to_le_bytes().to_vec(), 8),
                Text(text) => ((text.as_ptr() as u64).to_le_bytes().to_vec(), 8),
            };
            block.resize(block.len().next_multiple_of(size), 0);
            block.extend(bytes);
        }
        // Aligned like a thread's local memory.
        let mut words = vec![0_u64; block.len() / 8 + 1];
        for (word, bytes) in words.iter_mut().zip(block.chunks(8)) {
            let mut full = [0; 8];
            full[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(full);
        }
        let mut text = Vec::new();
        let count = super::format(&mut text, format.as_ptr() as u64, words.as_ptr() as u64);
        (String::from_utf8(text).unwrap(), count)
    }

    #[test]
    fn numbers() {
        let cases: &[(&std::ffi::CStr, &[Arg], &str)] = &[
            (c"%d %i|", &[Int(-5), Int(7)], "-5 7|"),
            (c"%u %x %X %o", &[Int(-1), Int(255), Int(255), Int(8)], "4294967295 ff FF 10"),
            (c"%ld %llu %lu", &[Long(-1), Long(-1), Long(9)], "-1 18446744073709551615 9"),
            (c"%hd %hhu", &[Int(0x1_8000), Int(0x1ff)], "-32768 255"),
            (c"[%5d|%-5d|%05d|%+d]", &[Int(42), Int(42), Int(42), Int(42)], "[   42|42   |00042|+42]"),
            (c"[%#x %#o]", &[Int(255), Int(8)], "[0xff 010]"),
            (c"[%*d|%-*d]", &[Int(6), Int(1), Int(4), Int(2)], "[     1|2   ]"),
            (c"[%*d]", &[Int(-4), Int(7)], "[7   ]"),
            (
                c"%.2f %8.3f %e %g",
                &[Double(1.005), Double(-2.5), Double(12345.0), Double(1e-5)],
                "1.00   -2.500 1.234500e+04 1e-05",
            ),
            (c"%.1f", &[Double(2.25)], "2.2"),
            (c"%a", &[Double(1.0)], "0x1p+0"),
            (c"%f %F", &[Double(f64::INFINITY), Double(f64::NAN)], "inf NAN"),
        ];
        for (format, arguments, expected) in cases {
            assert_eq!(printed(format, arguments).0, *expected, "{format:?}");
        }
    }

    #[test]
    fn texts() {
        assert_eq!(printed(c"%s and %c%%", &[Text(c"one"), Int(0x41)]), ("one and A%".into(), Some(2)));
        assert_eq!(
            printed(c"[%5s|%-5s|%.2s]", &[Text(c"ab"), Text(c"ab"), Text(c"abc")]).0,
            "[   ab|ab   |ab]"
        );
        assert_eq!(printed(c"%s", &[Long(0)]).0, "(null)");
        assert_eq!(printed(c"%", &[]).0, "%");
        assert_eq!(printed(c"%k", &[]).0, "%k");
    }

    #[test]
    fn no_more_than_32_arguments() {
        let numbers: Vec<Arg> = (0..40).map(Int).collect();
        let (text, count) =
            printed(c"%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d|%*d|%d %5d%%", &numbers);
        assert!(text.ends_with("2930|%*d|31 %5d%"), "{text}");
        assert_eq!(count, Some(32));
    }

    #[test]
    fn what_is_no_conversion_stands_for_itself() {
        assert_eq!(printed(c"%n %v %hq %-5y|%", &[Int(1)]), ("%n %v %hq %-5y|%".into(), Some(0)));
        assert_eq!(printed(c"%%|%5%|%d", &[Int(1)]), ("%|%5%|1".into(), Some(1)));
        let unknown = c"%zu %td %jd %Lf %.*f %*.*f";
        assert_eq!(printed(unknown, &[Long(7)]), (unknown.to_str().unwrap().into(), Some(0)));
        assert_eq!(
            printed(c"%lf %lc %hhx %ld", &[Double(0.5), Int(65), Int(0x123), Long(-7)]).0,
            "0.500000 A 23 -7"
        );
    }

    #[test]
    fn alignment_of_arguments() {
        let (text, count) = printed(c"%d %f %d %lld", &[Int(1), Double(2.0), Int(3), Long(4)]);
        assert_eq!((text.as_str(), count), ("1 2.000000 3 4", Some(4)));
    }

    #[test]
    fn unreadable_memory_is_a_failure() {
        assert_eq!(super::format(&mut Vec::new(), 0x10, 0), None);
        assert_eq!(super::format(&mut Vec::new(), c"%d".as_ptr() as u64, 0x10), None);
        assert_eq!(printed(c"%s", &[Long(0x10)]).1, None);
    }
}
