//! What checksums tell of rows, compared with the bytes themselves.

use super::*;
use base::Random;
use base::request::Pieces;
use std::collections::BTreeMap;

/// The first row of part 3, by position: of each block a byte that fills it, or a hole.
type Row = Vec<[Option<u8>; BLOCKS_PER_REGION]>;

const PART: u32 = 3;

fn item(parity: u8) -> Item {
    Item::part(0, PART).row(0, parity)
}

/// A row whose parity agrees. Data units have holes; columns with nothing have no parity, either.
fn row(code: Code, random: &mut Random) -> Row {
    let mut row: Row = vec![[None; BLOCKS_PER_REGION]; usize::from(code.members())];
    (0..BLOCKS_PER_REGION).for_each(|column| {
        let data: Vec<Option<u8>> =
            (0..code.data()).map(|_| random.chance(2, 3).then(|| random.bits() as u8)).collect();
        let place = |unit| usize::from(code.position(row_of(PART, 0), unit));
        for (unit, fill) in (0..code.data()).zip(&data) {
            row[place(Unit::Data(unit))][column] = *fill;
        }
        for parity in 0..code.parity() {
            let products = (0..code.data()).zip(&data).filter_map(|(unit, fill)| {
                fill.map(|fill| code::product(fill, code.coefficient(parity, unit)))
            });
            let sum = products.fold(0, |sum, one| sum ^ one);
            let is_there = data.iter().any(Option::is_some);
            row[place(Unit::Parity(parity))][column] = is_there.then_some(sum);
        }
    });
    row
}

/// What members answer to what is asked for.
fn answered(code: Code, item: &Item, row: &Row) -> Vec<Source> {
    let mut known: BTreeMap<u8, u32> = BTreeMap::new();
    let mut checksum = |fill: u8| *known.entry(fill).or_insert_with(|| crc32c(&[fill; BLOCK]));
    let mut sources = sources(code, item);
    for source in &mut sources {
        let of = row[usize::from(source.position)];
        let products = of.map(|fill| Some(checksum(code::product(fill?, source.coefficient))));
        source.checksums = Some(products.to_vec());
    }
    sources
}

fn found(row: &Row, pool: &Pool) -> Found {
    let mut found = Found::nothing(item(0).range);
    for (position, fills) in (0u8..).zip(row) {
        let mut data = Data { pieces: Pieces::new(), checksums: SmallVec::new() };
        for fill in fills {
            data.pieces.push(match fill {
                None => Piece::Hole(BLOCK as u32),
                Some(fill) => {
                    let mut buffer = pool.take(BLOCK).expect("there is room");
                    buffer.bytes_mut().fill(*fill);
                    data.checksums.push(crc32c(&buffer));
                    Piece::Bytes(buffer)
                }
            });
        }
        found.put(position, data);
    }
    found
}

#[test]
fn checksums_tell_whether_parity_agrees_with_data_also_where_there_are_holes() {
    let mut random = Random::new(4);
    for code in Code::ALL {
        for _ in 0..20 {
            let mut row = row(code, &mut random);
            for parity in 0..code.parity() {
                let sources = answered(code, &item(parity), &row);
                let looked = look(code, &item(parity), &sources).expect("all have answered");
                assert_eq!((&looked.rows[..], &looked.disagreeing[..]), (&[0][..], &[][..]));
            }
            // A block of any member becomes another one, or gets lost: what counts it disagrees, and nothing else.
            let position = random.below(u64::from(code.members())) as u8;
            let column = random.below(BLOCKS_PER_REGION as u64) as usize;
            let block = &mut row[usize::from(position)][column];
            *block = Some(block.unwrap_or_default() ^ (1 << random.below(8)));
            for parity in 0..code.parity() {
                let counts = match code.unit(row_of(PART, 0), position) {
                    Unit::Data(_) => true,
                    Unit::Parity(unit) => unit == parity,
                };
                let sources = answered(code, &item(parity), &row);
                let looked = look(code, &item(parity), &sources).expect("all have answered");
                assert_eq!(!looked.disagreeing.is_empty(), counts, "{code:?} {position} {parity}");
            }
        }
    }
}

#[test]
fn the_first_parity_of_all_rows_of_a_part_is_told_by_one_answer_of_each_member() {
    for code in Code::ALL {
        let part = Item::part(0, PART);
        let asked = sources(code, &part);
        assert!(asked.iter().all(|one| one.coefficient == 1));
        assert_eq!(asked.len(), usize::from(code.members()));
        assert_eq!(part.rows().count(), REGIONS_PER_EXTENT);
        let short = asked.into_iter().map(|one| Source { checksums: Some(vec![None; 3]), ..one });
        assert_eq!(
            look(code, &part, &short.collect::<Vec<_>>()),
            None,
            "an answer of fewer blocks tells nothing"
        );
    }
    let of_q = sources(Code::FOUR_AND_TWO, &item(1));
    let mut coefficients: Vec<u8> = of_q.iter().map(|one| one.coefficient).collect();
    coefficients.sort_unstable();
    assert_eq!(coefficients, [1, 1, 2, 4, 8]);
}

#[test]
fn parity_is_made_anew_from_the_data_and_the_unit_that_two_parities_imply_is_named() {
    let (mut random, pool) = (Random::new(5), Pool::new(64 << 20));
    for code in Code::ALL {
        for position in 0..code.members() {
            let right = row(code, &mut random);
            let verdict = judge(code, item(0).range, &found(&right, &pool), &pool).expect("there is room");
            assert!(verdict.wrong.is_empty() && verdict.implied.is_none());
            let mut row = right.clone();
            for column in [5, 7] {
                let block = &mut row[usize::from(position)][column];
                *block = Some(!block.unwrap_or_default());
            }
            let verdict = judge(code, item(0).range, &found(&row, &pool), &pool).expect("there is room");
            let unit = code.unit(row_of(PART, 0), position);
            let (units, implied) = match unit {
                Unit::Parity(unit) => (vec![unit], None),
                Unit::Data(unit) => ((0..code.parity()).collect(), (code.parity() == 2).then_some(unit)),
            };
            assert_eq!(verdict.wrong.iter().map(|one| one.parity).collect::<Vec<_>>(), units);
            assert_eq!(verdict.implied, implied);
            for one in &verdict.wrong {
                assert_eq!((one.range.block, one.range.count, one.blocks), (5, 3, 2));
                let at = usize::from(code.position(row_of(PART, 0), Unit::Parity(one.parity)));
                (5..8).for_each(|column| row[at][column] = Some(one.right[(column - 5) * BLOCK]));
            }
            let after = judge(code, item(0).range, &found(&row, &pool), &pool).expect("there is room");
            assert!(after.wrong.is_empty(), "once that is written all agree");
        }
    }
}

#[test]
fn new_parity_has_the_checksums_that_follow_from_those_of_the_data() {
    let (mut random, pool) = (Random::new(6), Pool::new(16 << 20));
    for code in Code::ALL {
        let row = row(code, &mut random);
        let found = found(&row, &pool);
        let range = item(0).range;
        let mut of: [Option<Vec<Option<u32>>>; UNITS_MAX] =
            std::array::from_fn(|position| found.get(position as u8).map(by_block));
        assert!(is_proven(code, range, &of));
        let parity = usize::from(code.position(row_of(PART, 0), Unit::Parity(0)));
        let column = row[parity].iter().position(Option::is_some).expect("some column has data");
        let checksums = of[parity].as_mut().expect("it is there");
        checksums[column] = checksums[column].map(|checksum| checksum ^ 1);
        assert!(!is_proven(code, range, &of));
        of[usize::from(code.position(row_of(PART, 0), Unit::Data(1)))] = None;
        assert!(is_proven(code, range, &of), "what is not known refutes nothing");
    }
}
