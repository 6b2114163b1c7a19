//! One attempt of a step, as it is named everywhere.

use piton_core::StepPath;

/// One attempt of a step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt {
    /// The step.
    pub step: StepPath,
    /// Its number.
    pub number: u32,
}

impl std::fmt::Display for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}", self.step, self.number)
    }
}

impl std::str::FromStr for Attempt {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (step, number) = text.rsplit_once('#').ok_or(())?;
        Ok(Self { step: step.parse().map_err(|_| ())?, number: number.parse().map_err(|_| ())? })
    }
}
