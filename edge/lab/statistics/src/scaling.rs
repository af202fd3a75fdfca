//! Scale-out: linearity, and the Universal Scalability Law with intervals.
//!
//! USL (Gunther): X(N) = λN / (1 + σ(N-1) + κN(N-1)); σ is contention, κ coherence. It is for members added (VMs, hosts), and
//! does not fit a sweep over depth: the error is told, and above [`ERROR_MAX`] that it does not fit. Fitted by least squares
//! on ln(predicted / observed) (Levenberg and Marquardt), started from the fit of N/X, which is linear in its parameters. Twice as
//! much and half as much are equally far off then; by predicted / observed - 1 a fit that is too low costs at most 1 a
//! point, and noise pulls it down.

use serde::{Deserialize, Serialize};

use crate::{quantile, words};

mod solve;
#[cfg(test)]
mod tests;

/// Above this root mean square of relative errors the law does not describe the figures.
pub const ERROR_MAX: f64 = 0.10;

/// Throughput by number of members.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScalePoint {
    /// VMs or hosts, above zero.
    pub members: f64,
    /// Their throughput together, above zero.
    pub throughput: f64,
}

/// A parameter and where it lies at 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// The estimate.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

/// The law, fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scalability {
    /// λ: what one member alone does.
    pub lambda: Parameter,
    /// σ: the share that is done one after another. Below zero: more than linear.
    pub sigma: Parameter,
    /// κ: the cost of agreeing, which makes throughput fall in the end.
    pub kappa: Parameter,
    /// Root mean square of ln(predicted / observed): the relative error, while it is small.
    pub error: f64,
    /// Where throughput is largest: √((1-σ)/κ), only when κ's interval lies above zero.
    pub peak: Option<f64>,
    /// Points the fit is of.
    pub points: usize,
}

/// Figures that the law cannot be fitted to.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ScalabilityError {
    /// Three parameters and their intervals need four different numbers of members.
    #[error("the scalability law needs at least 4 different numbers of members, found {found}")]
    TooFew {
        /// How many there are.
        found: usize,
    },
    /// A figure that is not above zero and finite.
    #[error("point {index}: members and throughput must be above zero")]
    NotPositive {
        /// Which point, from 0.
        index: usize,
    },
    /// The equations have no single answer.
    #[error("the scalability law has no unique fit to these figures")]
    Undetermined,
}

impl Scalability {
    /// True when the law describes the figures.
    pub fn fits(&self) -> bool {
        self.error <= ERROR_MAX
    }

    /// The throughput of so many members, by the law.
    pub fn at(&self, members: f64) -> f64 {
        model([self.lambda.value.ln(), self.sigma.value, self.kappa.value], members)
    }
}

impl std::fmt::Display for Scalability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.fits() {
            let error = words::percent(self.error);
            return write!(f, "the scalability law does not fit (error {error})");
        }
        let interval = |of: &Parameter| format!("{:.4} ({:.4} to {:.4})", of.value, of.low, of.high);
        let (sigma, kappa) = (interval(&self.sigma), interval(&self.kappa));
        write!(f, "contention σ = {sigma}, coherence κ = {kappa}, fit error {}", words::percent(self.error))?;
        match self.peak {
            Some(peak) => write!(f, "; throughput peaks at N = {}", words::number(peak)),
            None => write!(f, "; no decline seen"),
        }
    }
}

/// λN / (1 + σ(N-1) + κN(N-1)) with ln λ, σ, κ.
fn model([log_lambda, sigma, kappa]: [f64; 3], n: f64) -> f64 {
    log_lambda.exp() * n / divisor(sigma, kappa, n)
}

fn divisor(sigma: f64, kappa: f64, n: f64) -> f64 {
    1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0)
}

/// Fits the law.
pub fn scalability(points: &[ScalePoint]) -> Result<Scalability, ScalabilityError> {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    let valid = |point: &ScalePoint| positive(point.members) && positive(point.throughput);
    if let Some(index) = points.iter().position(|point| !valid(point)) {
        return Err(ScalabilityError::NotPositive { index });
    }
    let mut members: Vec<f64> = points.iter().map(|point| point.members).collect();
    members.sort_by(f64::total_cmp);
    members.dedup();
    if members.len() < 4 {
        return Err(ScalabilityError::TooFew { found: members.len() });
    }
    let best = descend(points, start(points).ok_or(ScalabilityError::Undetermined)?);
    let squares: f64 = points.iter().map(|point| residual(best, point).powi(2)).sum();
    let freedom = points.len() as f64 - 3.0;
    let covariance = solve::inverse(&normal_matrix(points, best).0).ok_or(ScalabilityError::Undetermined)?;
    let t = quantile::student(0.975, freedom);
    let reach = |index: usize| t * (squares / freedom * covariance[index][index].max(0.0)).sqrt();
    let around = |index: usize| Parameter {
        value: best[index],
        low: best[index] - reach(index),
        high: best[index] + reach(index),
    };
    let log_lambda = around(0);
    let lambda =
        Parameter { value: log_lambda.value.exp(), low: log_lambda.low.exp(), high: log_lambda.high.exp() };
    let (sigma, kappa) = (around(1), around(2));
    let peak = (kappa.low > 0.0 && sigma.value < 1.0).then(|| ((1.0 - sigma.value) / kappa.value).sqrt());
    let error = (squares / points.len() as f64).sqrt();
    Ok(Scalability { lambda, sigma, kappa, error, peak, points: points.len() })
}

/// ln(predicted / observed) at a point.
fn residual(parameters: [f64; 3], point: &ScalePoint) -> f64 {
    (model(parameters, point.members) / point.throughput).ln()
}

/// N/X = a + b(N-1) + cN(N-1), by least squares on relative errors: linear.
fn start(points: &[ScalePoint]) -> Option<[f64; 3]> {
    let (mut matrix, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
    for &ScalePoint { members: n, throughput } in points {
        let weight = throughput / n;
        let row = [1.0, n - 1.0, n * (n - 1.0)].map(|term| term * weight);
        accumulate(&mut matrix, &mut right, row, 1.0);
    }
    let [a, b, c] = solve::solve(&matrix, right)?;
    if a > 0.0 {
        return Some([-a.ln(), b / a, c / a]);
    }
    // Far from the law: begin with no contention at all.
    let first = points.iter().min_by(|one, other| one.members.total_cmp(&other.members))?;
    Some([(first.throughput / first.members).ln(), 0.0, 0.0])
}

fn accumulate(matrix: &mut [[f64; 3]; 3], right: &mut [f64; 3], row: [f64; 3], value: f64) {
    for i in 0..3 {
        right[i] += row[i] * value;
        for j in 0..3 {
            matrix[i][j] += row[i] * row[j];
        }
    }
}

/// Of the residuals' Jacobian: J^T J, and -J^T r.
fn normal_matrix(points: &[ScalePoint], parameters: [f64; 3]) -> ([[f64; 3]; 3], [f64; 3]) {
    let (mut matrix, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
    for point in points {
        let (n, residual) = (point.members, residual(parameters, point));
        let divisor = divisor(parameters[1], parameters[2], n);
        let row = [1.0, -(n - 1.0) / divisor, -n * (n - 1.0) / divisor];
        accumulate(&mut matrix, &mut right, row, -residual);
    }
    (matrix, right)
}

/// Levenberg and Marquardt's descent.
fn descend(points: &[ScalePoint], from: [f64; 3]) -> [f64; 3] {
    const STEPS: usize = 200;
    let cost = |parameters: [f64; 3]| -> f64 {
        // Beyond a pole the law means nothing.
        let defined = points.iter().all(|point| divisor(parameters[1], parameters[2], point.members) > 1e-9);
        if defined {
            points.iter().map(|point| residual(parameters, point).powi(2)).sum()
        } else {
            f64::INFINITY
        }
    };
    let (mut best, mut damping) = (from, 1e-3);
    if !cost(best).is_finite() {
        best = [from[0], 0.0, 0.0];
    }
    for _ in 0..STEPS {
        let (mut matrix, right) = normal_matrix(points, best);
        for (index, row) in matrix.iter_mut().enumerate() {
            row[index] += damping * row[index].max(1e-12);
        }
        let Some(step) = solve::solve(&matrix, right) else { return best };
        let next = [best[0] + step[0], best[1] + step[1], best[2] + step[2]];
        let (before, after) = (cost(best), cost(next));
        if after <= before {
            best = next;
            damping = (damping / 10.0f64).max(1e-12);
            if before - after <= 1e-15 * (1.0 + before) {
                return best;
            }
        } else {
            damping *= 10.0;
            if damping > 1e12 {
                return best;
            }
        }
    }
    best
}

/// How a throughput compares with as many times that of one: x_n / (n x_1). 1 is linear. Points of more members than one
/// need one of the fewest members, which stands for "one" when it has more. Rising by members.
pub fn linearity(points: &[ScalePoint]) -> Vec<(f64, f64)> {
    let valid = |point: &&ScalePoint| point.members > 0.0 && point.throughput > 0.0;
    let mut sorted: Vec<ScalePoint> = points.iter().filter(valid).copied().collect();
    sorted.sort_by(|one, other| one.members.total_cmp(&other.members));
    let Some(first) = sorted.first().map(|first| first.throughput / first.members) else { return Vec::new() };
    sorted.iter().map(|point| (point.members, point.throughput / point.members / first)).collect()
}
