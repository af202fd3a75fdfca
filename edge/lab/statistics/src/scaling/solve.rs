//! Three equations with three unknowns.

/// x with matrix x = right; nothing when the matrix is singular.
pub(super) fn solve(matrix: &[[f64; 3]; 3], right: [f64; 3]) -> Option<[f64; 3]> {
    let mut rows: [[f64; 4]; 3] = [0, 1, 2].map(|i| [matrix[i][0], matrix[i][1], matrix[i][2], right[i]]);
    for column in 0..3 {
        let pivot = (column..3).max_by(|&i, &j| rows[i][column].abs().total_cmp(&rows[j][column].abs()))?;
        rows.swap(column, pivot);
        let top = rows[column];
        // Relative to the matrix's own size: its columns differ by orders of magnitude.
        if top[column].abs() <= 1e-13 * matrix[column][column].abs() || !top[column].is_finite() {
            return None;
        }
        for (index, row) in rows.iter_mut().enumerate() {
            if index != column {
                let factor = row[column] / top[column];
                row.iter_mut().zip(top).for_each(|(value, above)| *value -= factor * above);
            }
        }
    }
    let result = [0, 1, 2].map(|i| rows[i][3] / rows[i][i]);
    result.iter().all(|value| value.is_finite()).then_some(result)
}

/// The inverse; nothing when the matrix is singular.
pub(super) fn inverse(matrix: &[[f64; 3]; 3]) -> Option<[[f64; 3]; 3]> {
    let column = |unit: usize| solve(matrix, [0, 1, 2].map(|i| f64::from(u8::from(i == unit))));
    let (x, y, z) = (column(0)?, column(1)?, column(2)?);
    Some([0, 1, 2].map(|i| [x[i], y[i], z[i]]))
}
