//! Questions about blocks whose answers have several parts, one for each context.

use super::answer::Refusal;
use super::contexts::Context;
use base::request::RequestError;
use slab::Slab;

/// A part of the answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// Of which question.
    pub(super) survey: u32,
    pub(super) context: Context,
}

/// Why a question ends without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SurveyFailure {
    OfDisk(RequestError),
    Refused(Refusal),
}

#[derive(Debug)]
struct Survey {
    /// Parts that are not told yet.
    left: usize,
    failure: Option<SurveyFailure>,
}

/// All that are under way.
#[derive(Debug, Default)]
pub(super) struct Surveys {
    under_way: Slab<Survey>,
}

impl Surveys {
    pub(super) fn begin(&mut self, parts: usize) -> u32 {
        self.under_way.insert(Survey { left: parts, failure: None }) as u32
    }

    /// A part will not be told; the first reason counts.
    pub(super) fn failed(&mut self, key: u32, failure: SurveyFailure) {
        self.under_way[key as usize].failure.get_or_insert(failure);
    }

    /// A part was told or has failed. If it was the last one: how all of it ends.
    pub(super) fn told(&mut self, key: u32) -> Option<Result<(), SurveyFailure>> {
        let survey = &mut self.under_way[key as usize];
        survey.left -= 1;
        if survey.left > 0 {
            return None;
        }
        let Survey { failure, .. } = self.under_way.remove(key as usize);
        Some(failure.map_or(Ok(()), Err))
    }
}
