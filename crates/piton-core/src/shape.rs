//! The structure of a plan, without its work: what a state is made of.
//!
//! It stands in the ledger with the events that set it, so that a status needs no plan.

use serde::{Deserialize, Serialize};

use crate::id::LanePath;
use crate::lane::{Isolation, Role, TaskOf};
use crate::plan::{Plan, Step};

/// The structure of a plan: what a state is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Its phases.
    pub phases: Vec<ShapePhase>,
}

/// A phase of a [`Shape`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShapePhase {
    /// Its id.
    pub id: String,
    /// Phases it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Phases it follows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Its gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// Its lanes.
    pub lanes: Vec<ShapeLane>,
}

/// A lane of a [`Shape`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShapeLane {
    /// Its id.
    pub id: String,
    /// Lanes it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<LanePath>,
    /// Its gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// Its steps.
    pub steps: Vec<ShapeStep>,
    /// Where it works.
    #[serde(default, skip_serializing_if = "Isolation::is_in_place")]
    pub isolation: Isolation,
    /// Whether what it leaves in place is committed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub commits: bool,
    /// Whether no other lane may run beside it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// The task it does, where it is a part of another lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskOf>,
}

/// A step of a [`Shape`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShapeStep {
    /// Its id.
    pub id: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Role::is_work")]
    pub role: Role,
    /// The gate at which a person is asked when it keeps failing alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<String>,
}

impl ShapeLane {
    /// Whether it is the validation of its phase.
    pub fn is_validation(&self) -> bool {
        !self.steps.is_empty() && self.steps.iter().all(|s| s.role == Role::Validation)
    }
}

impl From<&Step> for ShapeStep {
    fn from(step: &Step) -> Self {
        Self { id: step.id.clone(), role: step.role, escalation: step.escalation.clone() }
    }
}

impl From<&Plan> for Shape {
    fn from(plan: &Plan) -> Self {
        let lane = |lane: &crate::plan::Lane| ShapeLane {
            id: lane.id.clone(),
            needs: lane.needs.clone(),
            gate: lane.gate.clone(),
            steps: lane.steps.iter().map(ShapeStep::from).collect(),
            isolation: lane.rules.isolation,
            commits: lane.rules.commits,
            alone: lane.rules.alone,
            task: lane.rules.task.clone(),
        };
        let phase = |phase: &crate::plan::Phase| ShapePhase {
            id: phase.id.clone(),
            needs: phase.needs.clone(),
            after: phase.after.clone(),
            gate: phase.gate.clone(),
            lanes: phase.lanes.iter().map(lane).collect(),
        };
        Self { phases: plan.phases.iter().map(phase).collect() }
    }
}
