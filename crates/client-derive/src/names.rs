//! How names are written: the eight styles of `rename_all`.

use syn::LitStr;

/// A style of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

const STYLES: [(&str, Style); 8] = [
    ("lowercase", Style::Lower),
    ("UPPERCASE", Style::Upper),
    ("PascalCase", Style::Pascal),
    ("camelCase", Style::Camel),
    ("snake_case", Style::Snake),
    ("SCREAMING_SNAKE_CASE", Style::ScreamingSnake),
    ("kebab-case", Style::Kebab),
    ("SCREAMING-KEBAB-CASE", Style::ScreamingKebab),
];

impl Style {
    /// The style that a literal names.
    pub(crate) fn parse(text: &LitStr) -> syn::Result<Self> {
        let name = text.value();
        STYLES.into_iter().find(|(known, _)| *known == name).map(|(_, style)| style).ok_or_else(|| {
            let known: Vec<String> = STYLES.iter().map(|(name, _)| format!("`{name}`")).collect();
            syn::Error::new(text.span(), format!("unknown style; there are {}", known.join(", ")))
        })
    }

    /// A field's or variant's name in this style.
    pub(crate) fn apply(self, name: &str) -> String {
        let words = words(name);
        let lower = || words.iter().map(|word| word.to_lowercase());
        let join = |separator: &str| lower().collect::<Vec<_>>().join(separator);
        match self {
            Self::Lower => join(""),
            Self::Upper => join("").to_uppercase(),
            Self::Pascal => lower().map(|word| capitalized(&word)).collect(),
            Self::Camel => {
                let cased =
                    |(index, word): (usize, String)| if index == 0 { word } else { capitalized(&word) };
                lower().enumerate().map(cased).collect()
            }
            Self::Snake => join("_"),
            Self::ScreamingSnake => join("_").to_uppercase(),
            Self::Kebab => join("-"),
            Self::ScreamingKebab => join("-").to_uppercase(),
        }
    }
}

/// The words of a name in either style of Rust: `zip_code`, `ZipCode`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for part in name.split('_').filter(|part| !part.is_empty()) {
        let mut was_lower = true;
        words.push(String::new());
        for letter in part.chars() {
            // A row of capitals is one word: `HTTP`.
            if letter.is_uppercase() && was_lower && words.last().is_some_and(|word| !word.is_empty()) {
                words.push(String::new());
            }
            was_lower = !letter.is_uppercase();
            if let Some(word) = words.last_mut() {
                word.push(letter);
            }
        }
    }
    words
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_styles_of_rust_become_every_style() {
        for name in ["zip_code_2", "ZipCode_2"] {
            let all: Vec<String> = STYLES.iter().map(|(_, style)| style.apply(name)).collect();
            assert_eq!(
                all,
                [
                    "zipcode2",
                    "ZIPCODE2",
                    "ZipCode2",
                    "zipCode2",
                    "zip_code_2",
                    "ZIP_CODE_2",
                    "zip-code-2",
                    "ZIP-CODE-2"
                ]
            );
        }
        assert_eq!(Style::Snake.apply("HTTP"), "http");
        assert_eq!(Style::Camel.apply("_"), "");
    }
}
