//! The rows of the benchmark, for people and for programs.

use serde_json::json;

/// One comparison.
pub(super) struct Row {
    /// Its letter in the requirements, or `peer`.
    pub(super) id: &'static str,
    /// What is compared.
    pub(super) what: String,
    /// What ours is measured against.
    pub(super) floor_name: &'static str,
    /// What came of it.
    pub(super) result: Outcome,
    /// The most the ratio may be.
    pub(super) limit: Option<f64>,
    /// What else there is to say.
    pub(super) remark: String,
}

/// What came of a comparison.
pub(super) enum Outcome {
    /// Medians of both sides.
    Measured {
        /// Of the floor or peer.
        floor: f64,
        /// Of ours.
        ours: f64,
        /// Of both.
        unit: &'static str,
    },
    /// A number on its own, with nothing below it.
    Counted(f64),
    /// Why there is none.
    NotMeasured(String),
}

impl Row {
    /// The number that is held against the limit.
    pub(super) fn ratio(&self) -> Option<f64> {
        match &self.result {
            Outcome::Measured { floor, ours, .. } => Some(ours / floor),
            Outcome::Counted(count) => Some(*count),
            Outcome::NotMeasured(_) => None,
        }
    }

    /// Whether the limit is exceeded.
    pub(super) fn is_over(&self) -> bool {
        self.ratio().zip(self.limit).is_some_and(|(ratio, limit)| ratio > limit)
    }

    fn verdict(&self) -> &'static str {
        match (self.ratio(), self.limit) {
            (Some(_), Some(_)) if self.is_over() => "OVER",
            (Some(_), Some(_)) => "ok",
            (Some(_), None) => "",
            (None, _) => "not measured",
        }
    }
}

/// The table as text.
pub(super) fn text(rows: &[Row]) -> String {
    let heading = ["", "what", "against", "theirs", "ours", "ratio", "limit", "", ""];
    let mut cells = vec![heading.map(str::to_owned)];
    for row in rows {
        let (theirs, ours) = match &row.result {
            Outcome::Measured { floor, ours, unit } => {
                (format!("{floor:.2} {unit}"), format!("{ours:.2} {unit}"))
            }
            Outcome::Counted(_) | Outcome::NotMeasured(_) => (String::new(), String::new()),
        };
        let remark = match &row.result {
            Outcome::NotMeasured(why) => why.clone(),
            _ => row.remark.clone(),
        };
        cells.push([
            row.id.to_owned(),
            row.what.clone(),
            row.floor_name.to_owned(),
            theirs,
            ours,
            row.ratio().map_or(String::new(), |ratio| format!("{ratio:.2}")),
            row.limit.map_or(String::new(), |limit| format!("{limit}")),
            row.verdict().to_owned(),
            remark,
        ]);
    }
    let widths: Vec<usize> = (0..heading.len())
        .map(|column| cells.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for line in cells {
        let padded: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// The table as JSON.
pub(super) fn json(rows: &[Row]) -> String {
    let rows: Vec<serde_json::Value> = rows
        .iter()
        .map(|row| {
            let (floor, ours, unit, why) = match &row.result {
                Outcome::Measured { floor, ours, unit } => {
                    (Some(floor), Some(ours), Some(unit), None)
                }
                Outcome::Counted(count) => (None, Some(count), None, None),
                Outcome::NotMeasured(why) => (None, None, None, Some(why)),
            };
            json!({
                "id": row.id,
                "what": row.what,
                "against": row.floor_name,
                "theirs": floor,
                "ours": ours,
                "unit": unit,
                "ratio": row.ratio(),
                "limit": row.limit,
                "over": row.is_over(),
                "not_measured": why,
                "remark": row.remark,
            })
        })
        .collect();
    json!({ "rows": rows }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(floor: f64, ours: f64) -> Row {
        Row {
            id: "a",
            what: "x".to_owned(),
            floor_name: "y",
            result: Outcome::Measured { floor, ours, unit: "ms" },
            limit: Some(1.4),
            remark: String::new(),
        }
    }

    #[test]
    fn a_ratio_stands_beside_its_limit() {
        let rows = [row(2.0, 2.5), row(2.0, 3.0)];
        assert_eq!(rows.each_ref().map(Row::is_over), [false, true]);
        let text = text(&rows);
        assert!(text.contains("2.00 ms  2.50 ms  1.25   1.4    ok"), "{text}");
        assert!(text.contains("OVER"), "{text}");
        assert!(json(&rows).contains("\"ratio\":1.25"));
    }
}
