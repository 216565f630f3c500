//! A program over rows cut into stages: what comes before a fold, and what after.
//!
//! A value of an element is computed in the first stage that needs it, and kept for later ones; a
//! value of a row is computed once a row, before the elements of its stage.

use cupola_core::DType;
use cupola_core::backend::Fold;
use cupola_core::backend::{Body, Reg};
use cupola_core::prim::ReduceKind;

/// What an input of a stage's program is.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Source {
    /// An input of the segment.
    Input(usize),
    /// What an earlier stage kept: an array of all elements, or of a value a row.
    Kept(usize),
}

/// Where a stored output of a stage's program goes.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Target {
    /// An output of the segment.
    Output(usize),
    /// To be read by later stages.
    Kept(usize),
}

/// What is kept between stages.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    pub dtype: DType,
    /// A value a row, not one an element.
    pub is_row: bool,
}

/// A program over some rows, or over a value for each of them.
pub(super) struct Stage {
    /// Its outputs are the stored ones, then those that are folded.
    pub body: Body,
    /// Inputs of the segment first, then elements that were kept, then values of rows.
    pub sources: Vec<Source>,
    pub targets: Vec<Target>,
    /// How the last outputs are folded, and what is kept of that.
    pub folds: Vec<(ReduceKind, usize)>,
    pub is_row: bool,
}

/// A program over rows, in the order in which it runs.
pub(super) struct Stages {
    pub list: Vec<Stage>,
    pub kept: Vec<Kept>,
}

/// Which registers have a value a row, and when each is there and needed.
struct Cut<'a> {
    body: &'a Body,
    folds: &'a [Fold],
    /// Segment inputs.
    inputs: usize,
    is_row: Vec<bool>,
    /// How many folds, one after the other, come before a register.
    depth: Vec<usize>,
    /// The stage that computes an instruction's register, if any needs it.
    stage: Vec<Option<usize>>,
    /// The last stage.
    last: usize,
    /// Which of the outputs have a value a row.
    row_outputs: &'a [bool],
    /// Where each register is kept, if it is.
    place: Vec<Option<usize>>,
    kept: Vec<Kept>,
}

impl Stages {
    /// Cuts a program whose input `i` has a value a row where `row_inputs[i]`, likewise its
    /// outputs.
    pub fn new(body: &Body, folds: &[Fold], row_inputs: &[bool], row_outputs: &[bool]) -> Self {
        let cut = Cut::new(body, folds, row_inputs, row_outputs);
        let mut list = Vec::new();
        for stage in 0..=cut.last {
            for is_row in [true, false] {
                list.extend(cut.stage(stage, is_row));
            }
        }
        Stages { list, kept: cut.kept }
    }
}

impl<'a> Cut<'a> {
    fn new(body: &'a Body, folds: &'a [Fold], rows: &[bool], row_outputs: &'a [bool]) -> Self {
        let (count, inputs) = (body.registers(), body.inputs.len() - folds.len());
        let first = count - body.code.len();
        let mut is_row = vec![true; count];
        is_row[..inputs].copy_from_slice(&rows[..inputs]);
        let mut depth: Vec<Option<usize>> = vec![Some(0); count];
        depth[inputs..inputs + folds.len()].fill(None);
        depth[first..].fill(None);
        // Each round knows the depth of one more fold.
        for round in 0..=folds.len() {
            for (i, instr) in body.code.iter().enumerate() {
                let args = || instr.args.iter().map(|&r| usize::from(r));
                is_row[first + i] = args().all(|r| is_row[r]);
                let deepest = args().try_fold(0, |most, r| Some(depth[r]?.max(most)));
                depth[first + i] = deepest;
            }
            if let Some(fold) = folds.get(round) {
                depth[inputs + round] = depth[usize::from(fold.input)].map(|d| d + 1);
            }
        }
        let depth: Vec<usize> = depth.into_iter().map(Option::unwrap_or_default).collect();
        let last = depth[inputs..inputs + folds.len()].iter().copied().max().unwrap_or(0);
        let mut cut = Cut {
            body,
            folds,
            inputs,
            is_row,
            depth,
            stage: vec![None; count],
            last,
            row_outputs,
            place: vec![None; count],
            kept: Vec::new(),
        };
        cut.find_stages(first);
        cut.find_kept(first);
        cut
    }

    fn find_stages(&mut self, first: usize) {
        for &reg in &self.body.outputs {
            self.need(reg, self.last);
        }
        for fold in self.folds {
            self.need(fold.input, self.depth[usize::from(fold.input)]);
        }
        for (i, instr) in self.body.code.iter().enumerate().rev() {
            if let Some(stage) = self.stage[first + i] {
                instr.args.iter().for_each(|&reg| self.need(reg, stage));
            }
        }
    }

    fn need(&mut self, reg: Reg, stage: usize) {
        let known = &mut self.stage[usize::from(reg)];
        *known = Some(known.map_or(stage, |s| s.min(stage)));
    }

    /// Finds what is computed in one program and read in another; folds always are.
    fn find_kept(&mut self, first: usize) {
        for reg in self.inputs..self.inputs + self.folds.len() {
            self.keep(reg);
        }
        let programs: Vec<_> = (0..=self.last).flat_map(|s| [(s, true), (s, false)]).collect();
        for (stage, is_row) in programs {
            for reg in self.read(stage, is_row) {
                if reg >= first && !self.is_in(reg, stage, is_row) && self.place[reg].is_none() {
                    self.keep(reg);
                }
            }
        }
    }

    fn keep(&mut self, reg: usize) {
        self.place[reg] = Some(self.kept.len());
        let dtype = self.body.dtype_of(reg as Reg);
        self.kept.push(Kept { dtype, is_row: self.is_row[reg] });
    }

    /// Whether the program computes the register.
    fn is_in(&self, reg: usize, stage: usize, is_row: bool) -> bool {
        let first = self.body.registers() - self.body.code.len();
        reg >= first && self.stage[reg] == Some(stage) && self.is_row[reg] == is_row
    }

    /// The code of a program, by register.
    fn code(&self, stage: usize, is_row: bool) -> impl Iterator<Item = usize> + '_ {
        let first = self.body.registers() - self.body.code.len();
        (first..self.body.registers()).filter(move |&reg| self.is_in(reg, stage, is_row))
    }

    /// The outputs that a program stores, with their registers.
    fn outputs(&self, stage: usize, is_row: bool) -> impl Iterator<Item = (usize, usize)> + '_ {
        let all = self.body.outputs.iter().enumerate();
        all.filter(move |(o, _)| stage == self.last && self.row_outputs[*o] == is_row)
            .map(|(o, &reg)| (o, usize::from(reg)))
    }

    /// The folds of what a program gives, with their registers.
    fn folded(&self, stage: usize, is_row: bool) -> impl Iterator<Item = (usize, usize)> + '_ {
        let all = self.folds.iter().enumerate().map(|(k, fold)| (k, usize::from(fold.input)));
        all.filter(move |(_, reg)| !is_row && self.depth[*reg] == stage)
    }

    /// The registers that a program reads, in any order.
    fn read(&self, stage: usize, is_row: bool) -> Vec<usize> {
        let first = self.body.registers() - self.body.code.len();
        let instrs = self.code(stage, is_row).map(|reg| &self.body.code[reg - first]);
        let args = instrs.flat_map(|instr| instr.args.iter().map(|&r| usize::from(r)));
        let stored = self.outputs(stage, is_row).map(|(_, reg)| reg);
        args.chain(stored).chain(self.folded(stage, is_row).map(|(_, reg)| reg)).collect()
    }

    fn stage(&self, stage: usize, is_row: bool) -> Option<Stage> {
        let (body, inputs) = (self.body, self.inputs);
        let first = body.registers() - body.code.len();
        let first_scalar = inputs + self.folds.len();
        let mut sources: Vec<(usize, Source)> = Vec::new();
        for reg in self.read(stage, is_row) {
            let is_scalar = (first_scalar..first).contains(&reg);
            if is_scalar || self.is_in(reg, stage, is_row) {
                continue;
            }
            let source = self.place[reg].map_or(Source::Input(reg), Source::Kept);
            if !sources.contains(&(reg, source)) {
                sources.push((reg, source));
            }
        }
        sources.sort_by_key(|(reg, source)| match source {
            Source::Input(_) => (0, *reg),
            Source::Kept(k) => (1 + usize::from(self.kept[*k].is_row), *reg),
        });
        let code: Vec<usize> = self.code(stage, is_row).collect();
        let number = |reg: usize| -> Reg {
            let source = sources.iter().position(|(r, _)| *r == reg);
            let scalar = || (first_scalar..first).contains(&reg).then(|| reg - first_scalar);
            let own = || code.iter().position(|&r| r == reg).map(|i| i + body.scalars.len());
            let after = || scalar().or_else(own).map(|i| i + sources.len());
            source.or_else(after).unwrap_or_default() as Reg
        };
        let kept = code.iter().filter_map(|&reg| Some((Target::Kept(self.place[reg]?), reg)));
        let stored = self.outputs(stage, is_row).map(|(o, reg)| (Target::Output(o), reg));
        let (targets, mut outputs): (Vec<Target>, Vec<Reg>) =
            kept.chain(stored).map(|(target, reg)| (target, number(reg))).unzip();
        let mut folds = Vec::new();
        for (k, reg) in self.folded(stage, is_row) {
            outputs.push(number(reg));
            folds.push((self.folds[k].kind, self.place[inputs + k]?));
        }
        if outputs.is_empty() {
            return None;
        }
        let program = Body {
            shape: body.shape.clone(),
            inputs: sources.iter().map(|(reg, _)| body.dtype_of(*reg as Reg)).collect(),
            scalars: body.scalars.clone(),
            code: (code.iter())
                .map(|&reg| {
                    let mut instr = body.code[reg - first].clone();
                    instr.args.iter_mut().for_each(|r| *r = number(usize::from(*r)));
                    instr
                })
                .collect(),
            outputs,
        };
        let sources = sources.into_iter().map(|(_, source)| source).collect();
        Some(Stage { body: program, sources, targets, folds, is_row })
    }
}
