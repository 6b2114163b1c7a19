//! Reading, changing and writing state files.

mod editing;
mod reading;

/// A run in its fifth stage, in the protocol's own form.
const MIDRUN: &str = "# Pipeline State

- run_id: 2026-03-01T09:00:00Z
- feature: 007-export
- owner: somebody
- spec_version: 1.0.0
- spec_hash: sha256:1111
- last_updated_at: 2026-03-01T10:00:00Z
- current_stage: programmer
- status: IN_PROGRESS

## Completed Stages

| Stage | Completed At | Output Artifact | Output Hash |
|-------|-------------|-----------------|-------------|
| spec | 2026-03-01T09:10:00Z | specs/007-export/feature.spec.md | sha256:22... |
| tdd | 2026-03-01T09:40:00Z | tests/__init__.py | sha256:33... |

## Current Stage Detail

- stage: programmer
- dispatched_at: 2026-03-01T09:45:00Z
- job_status: RETRYING
- retry_count: 2
- last_output_summary: AC-1 fails; one
  more line of it

## Iteration Counts

| Stage | Cycle Count | Budget | Status |
|-------|-------------|--------|--------|
| tdd | 1 | 3 | WITHIN_BUDGET |
| programmer | 2 | 5 | WITHIN_BUDGET |

## Failure Clusters

| Cluster | First Seen | Retry Count | Stage | Notes |
|---------|-----------|-------------|-------|-------|
| AC-1 quoting | 2026-03-01T09:50:00Z | 2 | programmer | |

## Human Checkpoints Cleared

- [x] Spec approval
- [ ] Architecture sign-off (includes Constitution Check)
- [ ] Security sign-off

## Notes

Resumed once.
";

/// The header as a table, and a stage ledger instead of completed stages.
const LEDGER: &str = "# Pipeline State: FEAT-9

| Field | Value |
|-------|-------|
| spec_id | SPEC-9 |
| spec_version | 1.0.0 |

## Stage Ledger

| Stage | Status | Date | Notes |
|-------|--------|------|-------|
| Spec | APPROVED | 2026-03-01 | written |
| Human Spec Checkpoint | **APPROVED** | 2026-03-01 | by the owner |
| Red-Team | COMPLETE | 2026-03-02 | |
| Fixes | **APPLIED** | 2026-03-02 | |
| Software Architect | PENDING | | waits |

## Constitution Note

Prose.
";
