//! Plans for other sizes: made from a plan of the same structure.
//!
//! A cache that grows by a token, a window that moves: most steps of the new plan are those of the old one. So a
//! structure that comes with several sizes leaves a template: its plan, with what each step was made from. For further
//! sizes, or other parameters of its ops, steps on operands that are the same are shared. The nodes of each other step
//! are planned by themselves, as a graph between the memory that the step reads and the memory that it writes. Where
//! they give the same steps on the same memory again, the order of the plan, and when memory is free, hold as they are.
//! Where they don't, the whole graph is planned anew.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::mem::discriminant;
use std::sync::Arc;

use smallvec::SmallVec;

use super::axes::Shapes;
use super::flat::{Flat, FlatGraph, Origin};
use super::fuse::{Fusion, Offset, Outputs, Slot, Surroundings};
use super::lower::{Drafted, bytes, finish, output};
use super::prepared::prepare;
use super::rows::FARTHEST;
use super::sink::LARGE;
use super::together::still_at_once;
use super::{Access, OutputSpec, Plan, Step};
use crate::backend::{Backend, Segment};
use crate::device::Device;
use crate::error::Result;
use crate::graph::{Borrowed, Ref};
use crate::prim::key::{Key, Mixer};
use crate::prim::{Avals, Input, Op};
use crate::shape::{Aval, Shape};

/// How many nodes and values a part of a template has at most: each is looked up among all of them.
const MOST: usize = 256;

/// The steps in memory that a value has.
type Strides = SmallVec<[isize; 4]>;

/// A hash of what graphs have in common that differ in sizes: ops by name, what they read, and how many axes
/// inputs have.
pub(super) fn structure(graph: &Borrowed<'_>, device: Device) -> u64 {
    let mut mixer = Mixer::default();
    device.hash(&mut mixer);
    for node in &graph.nodes {
        (discriminant(node.op), node.op.name(), &node.inputs).hash(&mut mixer);
        if let Op::Input(Input { aval }) = node.op {
            (aval.dtype, aval.shape.rank()).hash(&mut mixer);
        }
    }
    graph.outputs.hash(&mut mixer);
    mixer.finish()
}

/// The nodes of a graph before calls and composites are put in place.
pub(super) struct Outline {
    nodes: Vec<Outer>,
    outputs: Vec<Ref>,
}

/// A node that may have a body.
struct Outer {
    op: Op,
    inputs: SmallVec<[Ref; 3]>,
    avals: Avals,
    /// The node of the flat graph that it alone is; none where it was merged with others, has a body, or is dead.
    flat: Option<u32>,
}

impl Outline {
    /// That of `graph`.
    pub fn new(graph: &Borrowed<'_>) -> Outline {
        let nodes = graph.nodes.iter().map(|node| Outer {
            op: node.op.clone(),
            inputs: node.inputs.clone(),
            avals: node.avals.iter().cloned().collect(),
            flat: None,
        });
        Outline { nodes: nodes.collect(), outputs: graph.outputs.clone() }
    }
}

/// What each step of a plan was made from.
pub(super) struct Template {
    outline: Outline,
    /// The flat graph.
    nodes: Vec<Kept>,
    outputs: Vec<Ref>,
    /// The steps, by what they are made from; those that write what others read come first.
    parts: Vec<Part>,
    /// What each output of the plan is made from, of no step.
    ends: Vec<Part>,
}

/// A node of the flat graph, and where its outputs are in memory of their own.
struct Kept {
    op: Op,
    inputs: SmallVec<[Ref; 3]>,
    avals: Avals,
    source: Option<u32>,
    origin: Origin,
    homes: SmallVec<[Option<Home>; 1]>,
}

impl Kept {
    /// The inputs that it is computed from.
    fn read(&self) -> &[Ref] {
        // Of what a mark only waits for nothing is read.
        if matches!(self.op, Op::Mark(_)) { &self.inputs[..1] } else { &self.inputs }
    }
}

/// Where a value lies.
#[derive(Clone, PartialEq)]
struct Home {
    slot: Slot,
    strides: Strides,
    /// The shape of the memory, where a step makes it; it is a leaf otherwise.
    made: Option<Shape>,
}

/// Steps that write to the same memory, and the nodes that they compute.
#[derive(Default)]
struct Part {
    /// In the order of their groups.
    steps: SmallVec<[u32; 1]>,
    nodes: SmallVec<[u32; 4]>,
    /// The values in memory that they are computed from.
    borders: SmallVec<[Ref; 4]>,
    /// The values that they leave in memory for others.
    results: SmallVec<[Ref; 1]>,
}

impl Template {
    /// What the steps of `plan` are made from, which is that of `fusion`, of a graph with this outline, in the order
    /// that is given for its groups. None where that cannot be said.
    pub fn new(
        mut outline: Outline,
        fusion: &Fusion<'_>,
        plan: &Plan,
        order: &[usize],
    ) -> Option<Template> {
        let graph = fusion.graph;
        let homes = homes(fusion, plan);
        let kept = graph.nodes.iter().zip(&homes).map(|(node, homes)| Kept {
            op: node.op.clone(),
            inputs: node.inputs.clone(),
            avals: node.avals.iter().cloned().collect(),
            source: node.source,
            origin: node.origin.clone(),
            homes: homes.clone(),
        });
        let nodes: Vec<Kept> = kept.collect();
        for (at, node) in graph.nodes.iter().enumerate().filter(|(_, node)| !node.is_merged) {
            if let Some(source) = node.source {
                outline.nodes[source as usize].flat = Some(at as u32);
            }
        }
        // Which value is in each slot.
        let mut values: Vec<Option<Ref>> = vec![None; plan.slots.len()];
        for (node, homes) in homes.iter().enumerate() {
            for (at, home) in homes.iter().enumerate() {
                if let Some(home) = home {
                    values[home.slot as usize] = Some(Ref { node: node as u32, output: at as u32 });
                }
            }
        }
        let outputs = graph.outputs.clone();
        let mut template =
            Template { outline, nodes, outputs, parts: Vec::new(), ends: Vec::new() };
        let groups = groups(plan, &values);
        let mut part_of = vec![usize::MAX; plan.slots.len()];
        for (index, steps) in groups.iter().enumerate() {
            for out in steps.iter().flat_map(|&step| &plan.steps[step as usize].outputs) {
                part_of[out.slot as usize] = index;
            }
        }
        let mut asked: Vec<bool> = plan.slots.iter().map(|slot| slot.is_output).collect();
        for (index, steps) in groups.iter().enumerate() {
            for read in steps.iter().flat_map(|&step| &plan.steps[step as usize].inputs) {
                asked[read.slot as usize] |= part_of[read.slot as usize] != index;
            }
        }
        for (index, mut steps) in groups.into_iter().enumerate() {
            steps.sort_unstable_by_key(|&step| order[step as usize]);
            let of_steps = || steps.iter().map(|&step| &plan.steps[step as usize]);
            let (mut results, mut constants) = (SmallVec::new(), SmallVec::<[u32; 1]>::new());
            for slot in of_steps().flat_map(|step| &step.outputs).map(|out| out.slot as usize) {
                match values[slot].filter(|_| asked[slot]) {
                    Some(value) if !results.contains(&value) => results.push(value),
                    None if asked[slot] => {
                        // A constant that somebody asked for is written out.
                        let at =
                            fusion.outputs.iter().position(|view| view.slot as usize == slot)?;
                        constants.push(graph.outputs[at].node);
                    }
                    Some(_) | None => {}
                }
            }
            let of_others = of_steps().flat_map(|step| &step.inputs).map(|read| read.slot);
            let read: SmallVec<[Slot; 8]> =
                of_others.filter(|&slot| part_of[slot as usize] != index).collect();
            let mut part = template.part(results, &|slot| read.contains(&slot))?;
            part.nodes.extend(constants);
            let is_reached = |&slot: &Slot| part.borders.iter().any(|&r| template.is_at(r, slot));
            if !read.iter().all(is_reached) {
                return None;
            }
            // What it reads has to be known before.
            let is_late = |r: &Ref| {
                template.home(*r).is_none_or(|home| {
                    let maker = part_of[home.slot as usize];
                    maker != usize::MAX && maker >= index
                })
            };
            if part.borders.iter().any(is_late) {
                return None;
            }
            part.steps = steps;
            template.parts.push(part);
        }
        let ends = template.outputs.iter().map(|&r| template.end(r));
        template.ends = ends.collect::<Option<_>>()?;
        Some(template)
    }

    /// What an output of the plan is made from: of values in memory, by movement alone.
    fn end(&self, r: Ref) -> Option<Part> {
        match self.home(r) {
            Some(_) => {
                let (borders, results) = (SmallVec::from_iter([r]), SmallVec::from_iter([r]));
                Some(Part { borders, results, ..Part::default() })
            }
            None => self.part(SmallVec::from_iter([r]), &|_| true),
        }
    }

    /// The nodes that `results` are computed by, and the values that they are computed from, in the memory that is
    /// `read`: all others are computed once more. None where they are very many.
    fn part(&self, results: SmallVec<[Ref; 1]>, read: &dyn Fn(Slot) -> bool) -> Option<Part> {
        let mut part = Part::default();
        let mut stack: SmallVec<[u32; 8]> = results.iter().map(|r| r.node).collect();
        while let Some(node) = stack.pop() {
            if part.nodes.contains(&node) {
                continue;
            }
            part.nodes.push(node);
            if part.nodes.len() + part.borders.len() > MOST {
                return None;
            }
            for &r in self.nodes[node as usize].read() {
                let is_leaf = self.nodes[r.node as usize].op.is_input();
                if !is_leaf && !self.home(r).is_some_and(|home| read(home.slot)) {
                    stack.push(r.node);
                } else if !part.borders.contains(&r) {
                    part.borders.push(r);
                }
            }
        }
        part.nodes.sort_unstable();
        part.results = results;
        Some(part)
    }

    fn home(&self, r: Ref) -> Option<&Home> {
        self.nodes[r.node as usize].homes[r.output as usize].as_ref()
    }

    fn is_at(&self, r: Ref, slot: Slot) -> bool {
        self.home(r).is_some_and(|home| home.slot == slot)
    }

    /// About the bytes of memory that it holds.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.outline.nodes[..])
            + size_of_val(&self.nodes[..])
            + size_of_val(&self.parts[..])
            + size_of_val(&self.ends[..])
    }
}

/// Where the values of nodes are in memory of their own: each is the first in its slot.
fn homes(fusion: &Fusion<'_>, plan: &Plan) -> Vec<SmallVec<[Option<Home>; 1]>> {
    let mut is_there = vec![false; plan.slots.len()];
    is_there[..plan.leaves].fill(true);
    for output in plan.steps.iter().flat_map(|step| &step.outputs) {
        is_there[output.slot as usize] = true;
    }
    let is_made = |slot: Slot| slot as usize >= plan.leaves;
    let of_nodes = fusion.vals.iter().enumerate().map(|(node, vals)| {
        let home = |val: &super::fuse::Val<'_>| {
            let view = val.view()?;
            let is_own = is_there[view.slot as usize]
                && view.offset == Offset::default()
                && fusion.slots[view.slot as usize].maker == Some(node as u32);
            is_own.then(|| Home {
                slot: view.slot,
                strides: view.strides.clone(),
                made: is_made(view.slot)
                    .then(|| fusion.slots[view.slot as usize].form.shape.clone()),
            })
        };
        vals.iter().map(home).collect()
    });
    of_nodes.collect()
}

/// The steps in groups: those that write to the same memory, and with those that read it where no node has its
/// values there. Each is in the order of the plan, and they are in that of their first steps.
fn groups(plan: &Plan, values: &[Option<Ref>]) -> Vec<SmallVec<[u32; 1]>> {
    let mut first: Vec<usize> = (0..plan.steps.len()).collect();
    let mut by_slot: Vec<Option<usize>> = vec![None; plan.slots.len()];
    fn root(first: &[usize], mut at: usize) -> usize {
        while first[at] != at {
            at = first[at];
        }
        at
    }
    for (index, step) in plan.steps.iter().enumerate() {
        let nameless = step.inputs.iter().filter(|read| {
            read.slot as usize >= plan.leaves && values[read.slot as usize].is_none()
        });
        for access in step.outputs.iter().chain(nameless) {
            let other = by_slot[access.slot as usize].get_or_insert(index);
            let (a, b) = (root(&first, *other), root(&first, index));
            first[a.max(b)] = a.min(b);
        }
    }
    let mut groups: Vec<SmallVec<[u32; 1]>> = vec![SmallVec::new(); plan.steps.len()];
    for index in 0..plan.steps.len() {
        groups[root(&first, index)].push(index as u32);
    }
    groups.retain(|steps| !steps.is_empty());
    groups
}

impl Plan {
    /// The plan that is this one on the sizes of `now`, if it has the same steps there.
    pub(super) fn resized(
        self: &Arc<Plan>,
        mut now: Resizing<'_>,
        backend: &dyn Backend,
    ) -> Result<Option<Plan>> {
        let template = now.template;
        let mut made: Vec<(u32, Drafted)> = Vec::new();
        for part in &template.parts {
            if now.has_changed(part) && now.again(part, self, &mut made).is_none() {
                return Ok(None);
            }
        }
        let mut outputs = Vec::with_capacity(self.outputs.len());
        for (part, known) in template.ends.iter().zip(&self.outputs) {
            let output = if now.has_changed(part) { now.end(part) } else { Some(known.clone()) };
            let Some(output) = output else { return Ok(None) };
            outputs.push(output);
        }
        let mut slots = self.slots.clone();
        now.bytes.iter().for_each(|&(slot, bytes)| slots[slot as usize].bytes = bytes);
        made.sort_unstable_by_key(|(step, _)| *step);
        let mut steps = self.steps.clone();
        let (segments, rest): (Vec<Segment>, Vec<_>) = made
            .into_iter()
            .map(|(step, Drafted { segment, operands })| (segment, (step as usize, operands)))
            .unzip();
        for (prepared, (at, operands)) in prepare(segments, backend)?.into_iter().zip(rest) {
            let (frees, origin) = (steps[at].frees.clone(), steps[at].origin.clone());
            steps[at] = Arc::new(Step { frees, ..operands.step(prepared, origin) });
        }
        let at_once = still_at_once(&steps, &self.at_once);
        let plan = finish((steps, at_once), outputs, slots, self.leaves, backend);
        Ok(Some(Plan { from: Some(self.clone()), ..plan }))
    }
}

/// How a graph stands to a template.
pub(super) enum Likeness<'a> {
    /// It has another structure, or sizes for which other work may be better.
    None,
    /// What differs is inside of nodes: the flat graph shows it.
    Inside,
    /// It is the same on other sizes, or with other parameters.
    Sizes(Resizing<'a>),
}

impl Template {
    /// How `graph` stands to it, whose leaves lie in memory with `leaves` as strides.
    pub fn likeness<'a>(
        &'a self,
        graph: &Borrowed<'a>,
        leaves: &[Strides],
        backend: &'a dyn Backend,
    ) -> Likeness<'a> {
        let known = &self.outline;
        if graph.nodes.len() != known.nodes.len() || graph.outputs != known.outputs {
            return Likeness::None;
        }
        let mut now = Resizing::new(self, backend);
        let (mut sizes, mut is_other) = (Sizes::default(), vec![false; known.nodes.len()]);
        for (index, (node, known)) in graph.nodes.iter().zip(&known.nodes).enumerate() {
            let is_like = node.inputs == known.inputs && node.avals.len() == known.avals.len();
            if !is_like || sizes.change_all(node.avals, &known.avals, backend).is_none() {
                return Likeness::None;
            }
            is_other[index] = node.avals != &known.avals[..];
            let is_changed = is_other[index] || !is_same(node.op, &known.op, true);
            let reads_other = node.inputs.iter().any(|r| is_other[r.node as usize]);
            match known.flat {
                Some(at) if is_changed => now.change(at, node.op, node.avals),
                None if is_changed || reads_other => return Likeness::Inside,
                Some(_) | None => {}
            }
            if let Op::Composite(composite) = node.op
                && (is_changed || reads_other)
                && known.flat.is_some()
            {
                let aval = |r: &Ref| &graph.nodes[r.node as usize].avals[r.output as usize];
                let avals: SmallVec<[&Aval; 4]> = node.inputs.iter().map(aval).collect();
                if !backend.claims(composite, &avals) {
                    return Likeness::Inside;
                }
            }
        }
        now.checked(sizes, leaves)
    }

    /// How a flat graph stands to it.
    pub fn likeness_of_flat<'a>(
        &'a self,
        flat: &'a FlatGraph<'a>,
        leaves: &[Strides],
        backend: &'a dyn Backend,
    ) -> Likeness<'a> {
        if flat.nodes.len() != self.nodes.len() || flat.outputs != self.outputs {
            return Likeness::None;
        }
        let (mut now, mut sizes) = (Resizing::new(self, backend), Sizes::default());
        for (index, (node, known)) in flat.nodes.iter().zip(&self.nodes).enumerate() {
            let is_like = node.inputs == known.inputs
                && node.source == known.source
                && node.origin == known.origin
                && node.avals.len() == known.avals.len();
            if !is_like || sizes.change_all(node.avals, &known.avals, backend).is_none() {
                return Likeness::None;
            }
            let is_same = is_same(node.op, &known.op, node.source.is_some());
            if !is_same || node.avals != &known.avals[..] {
                now.change(index as u32, node.op, node.avals);
            }
        }
        now.checked(sizes, leaves)
    }
}

/// What a plan is to be made for.
pub(super) struct Resizing<'a> {
    template: &'a Template,
    backend: &'a dyn Backend,
    /// The nodes of the flat graph, and whether each has an op or an aval that the template's has not.
    nodes: Vec<(&'a Op, &'a [Aval], bool)>,
    changed: usize,
    /// Where values lie that lie in another way.
    homes: HashMap<Ref, Home, BuildHasherDefault<Mixer>>,
    /// What is now in slots, in bytes.
    bytes: Vec<(Slot, usize)>,
}

impl<'a> Resizing<'a> {
    /// For what the template was made for.
    fn new(template: &'a Template, backend: &'a dyn Backend) -> Self {
        let nodes = template.nodes.iter().map(|node| (&node.op, &node.avals[..], false)).collect();
        let (homes, bytes) = (HashMap::default(), Vec::new());
        Resizing { template, backend, nodes, changed: 0, homes, bytes }
    }

    /// Notes that a node is another.
    fn change(&mut self, node: u32, op: &'a Op, avals: &'a [Aval]) {
        self.nodes[node as usize] = (op, avals, true);
        self.changed += 1;
    }

    fn aval(&self, r: Ref) -> &'a Aval {
        &self.nodes[r.node as usize].1[r.output as usize]
    }

    /// Notes how leaves lie, and looks whether all this means the same work, most of it on the same sizes.
    fn checked(mut self, mut sizes: Sizes, leaves: &[Strides]) -> Likeness<'a> {
        let mut leaves = leaves.iter();
        for (index, (op, avals, is_changed)) in self.nodes.iter().enumerate() {
            if !op.is_input() {
                continue;
            }
            let home = self.template.nodes[index].homes[0].as_ref();
            let (Some(strides), Some(home)) = (leaves.next(), home) else { return Likeness::None };
            if home.strides != *strides {
                if sizes.pair(&home.strides, strides).is_none() {
                    return Likeness::None;
                }
                let r = Ref { node: index as u32, output: 0 };
                self.homes.insert(r, Home { strides: strides.clone(), ..home.clone() });
            }
            if *is_changed {
                let Aval { shape, dtype } = &avals[0];
                self.bytes.push((home.slot, shape.size().saturating_mul(dtype.size())));
            }
        }
        let is_little = self.changed * 2 < self.nodes.len();
        if is_little && sizes.are_apart(&self) { Likeness::Sizes(self) } else { Likeness::None }
    }

    /// Whether something that `part` is made from is another.
    fn has_changed(&self, part: &Part) -> bool {
        part.nodes.iter().any(|&node| self.nodes[node as usize].2)
            || part.borders.iter().any(|r| {
                let known = &self.template.nodes[r.node as usize].avals[r.output as usize];
                self.homes.contains_key(r) || self.aval(*r) != known
            })
    }

    /// Where a value lies in memory.
    fn home(&self, r: Ref) -> Option<&Home> {
        self.homes.get(&r).or_else(|| self.template.home(r))
    }

    /// What the graph of `part` has as inputs.
    fn inputs(&self, part: &Part) -> Option<Inputs> {
        let mut inputs = Inputs::default();
        for &r in &part.borders {
            let Home { strides, made, .. } = self.home(r)?.clone();
            inputs.ops.push(Op::Input(Input { aval: self.aval(r).clone() }));
            inputs.strides.push(strides);
            inputs.made.push(made);
        }
        Some(inputs)
    }

    /// The nodes of `part` as a graph of their own.
    fn graph<'i>(&self, part: &Part, inputs: &'i [Op]) -> Option<FlatGraph<'i>>
    where
        'a: 'i,
    {
        let mut nodes: Vec<Flat<'i>> = Vec::with_capacity(inputs.len() + part.nodes.len());
        for (op, &r) in inputs.iter().zip(&part.borders) {
            let avals = std::slice::from_ref(self.aval(r));
            let (inputs, origin) = (SmallVec::new(), Origin::new());
            nodes.push(Flat { op, inputs, avals, source: None, origin, is_merged: false });
        }
        let place = |r: &Ref| {
            if let Some(at) = part.borders.iter().position(|border| border == r) {
                return Some(Ref { node: at as u32, output: 0 });
            }
            let at = part.nodes.iter().position(|&node| node == r.node)?;
            Some(Ref { node: (inputs.len() + at) as u32, output: r.output })
        };
        for &node in &part.nodes {
            let (op, avals, _) = self.nodes[node as usize];
            let known = &self.template.nodes[node as usize];
            let inputs = known.read().iter().map(place).collect::<Option<_>>()?;
            let (source, origin) = (known.source, Origin::new());
            nodes.push(Flat { op, inputs, avals, source, origin, is_merged: false });
        }
        let outputs = part.results.iter().map(place).collect::<Option<_>>()?;
        Some(FlatGraph { nodes, outputs, shapes: Shapes::default() })
    }

    /// Plans the nodes of `part` once more. None where that gives other steps, or on other memory.
    fn again(&mut self, part: &Part, plan: &Plan, made: &mut Vec<(u32, Drafted)>) -> Option<()> {
        let Inputs { ops, strides, made: rest } = self.inputs(part)?;
        let graph = self.graph(part, &ops)?;
        // Those that somebody outside of the plan asked for.
        let is_asked = |r: &Ref| self.template.outputs.contains(r);
        let asked: SmallVec<[Ref; 1]> = part
            .results
            .iter()
            .zip(&graph.outputs)
            .filter(|(r, _)| is_asked(r))
            .map(|(_, place)| *place)
            .collect();
        let within = Outputs::Within(Surroundings { asked: &asked, made: &rest });
        let fusion = Fusion::new(&graph, &strides, self.backend.limits(), within);
        let mut slots = Places::new(self.template, part, fusion.slots.len());
        let groups = fusion.groups.iter().enumerate();
        let mut groups = groups.filter_map(|(at, group)| Some((at, group.as_ref()?)));
        for &step in &part.steps {
            let (index, group) = groups.next()?;
            let mut drafted = Drafted::of(&fusion, index, group);
            let known = &plan.steps[step as usize];
            slots.put(&mut drafted.operands.inputs, &known.inputs, false)?;
            slots.put(&mut drafted.operands.outputs, &known.outputs, true)?;
            made.push((step, drafted));
        }
        if groups.next().is_some() {
            return None;
        }
        for (&r, view) in part.results.iter().zip(&fusion.outputs) {
            let home = self.template.home(r)?;
            if slots.of(view.slot)? != home.slot || view.offset != Offset::default() {
                return None;
            }
            let memory = fusion.slots[view.slot as usize].form.shape;
            let (strides, made) = (view.strides.clone(), Some(memory.clone()));
            let now = Home { slot: home.slot, strides, made };
            if *home != now {
                self.homes.insert(r, now);
            }
        }
        for (info, slot) in fusion.slots.iter().zip(&slots.0).skip(part.borders.len()) {
            if let Some(slot) = slot {
                self.bytes.push((*slot, bytes(info)));
            }
        }
        Some(())
    }

    /// How an output of the plan is read now.
    fn end(&self, part: &Part) -> Option<OutputSpec> {
        let Inputs { ops, strides, made } = self.inputs(part)?;
        let graph = self.graph(part, &ops)?;
        let within = Outputs::Within(Surroundings { asked: &graph.outputs, made: &made });
        let fusion = Fusion::new(&graph, &strides, self.backend.limits(), within);
        if fusion.groups.iter().any(Option::is_some) {
            return None;
        }
        let mut output = output(&fusion.outputs[0]);
        output.access.slot =
            Places::new(self.template, part, fusion.slots.len()).of(output.access.slot)?;
        Some(output)
    }
}

/// What a part's graph reads: inputs, how they lie, and the memory of those that a step makes.
#[derive(Default)]
struct Inputs {
    ops: SmallVec<[Op; 4]>,
    strides: SmallVec<[Strides; 4]>,
    made: SmallVec<[Option<Shape>; 4]>,
}

/// Which slot of the plan each slot of a part's graph is.
struct Places(SmallVec<[Option<Slot>; 8]>);

impl Places {
    fn new(template: &Template, part: &Part, count: usize) -> Places {
        let mut places = SmallVec::from_elem(None, count);
        for (place, r) in places.iter_mut().zip(&part.borders) {
            *place = template.home(*r).map(|home| home.slot);
        }
        Places(places)
    }

    fn of(&self, slot: Slot) -> Option<Slot> {
        self.0[slot as usize]
    }

    /// Says of `accesses` which slots they are in the plan. None where they are not those that are `known`, of which
    /// those that are `written` may be new.
    fn put(&mut self, accesses: &mut [Access], known: &[Access], written: bool) -> Option<()> {
        if accesses.len() != known.len() {
            return None;
        }
        for (access, known) in accesses.iter_mut().zip(known) {
            let slot = access.slot as usize;
            if written && self.0[slot].is_none() && !self.0.contains(&Some(known.slot)) {
                self.0[slot] = Some(known.slot);
            }
            if self.0[slot] != Some(known.slot) {
                return None;
            }
            access.slot = known.slot;
        }
        Some(())
    }
}

/// Whether an op plans as one that is known: all is the same but what every run reads, if it does.
fn is_same(op: &Op, known: &Op, is_read: bool) -> bool {
    if op == known {
        return true;
    }
    let key = |op: &Op| {
        let mut key = Key::default();
        op.write_key(&mut key);
        key
    };
    is_read && discriminant(op) == discriminant(known) && key(op) == key(known)
}

/// The sizes that changed, and what they were. Each has one that it becomes, and that none else becomes, so that whatever
/// was equal is, and nothing else.
#[derive(Default)]
struct Sizes(SmallVec<[(isize, isize); 8]>);

impl Sizes {
    /// Notes the sizes of a node's avals, where they changed.
    fn change_all(&mut self, avals: &[Aval], known: &[Aval], backend: &dyn Backend) -> Option<()> {
        let mut changed = avals.iter().zip(known).filter(|(aval, known)| aval != known);
        changed.try_for_each(|(aval, known)| self.change(aval, known, backend.limits().row))
    }

    /// Notes the sizes of an aval that changed. None where they mean another work: for arrays of one element or none,
    /// of which axes are left out, for much larger ones, and at the sizes from which the planner does something else.
    fn change(&mut self, aval: &Aval, known: &Aval, row: usize) -> Option<()> {
        let bytes = |aval: &Aval| aval.shape.size().saturating_mul(aval.dtype.size());
        let is_near = |(&a, &b): (&usize, &usize)| {
            a == b || a.min(b) > 1 && a.max(b) <= 2 * a.min(b) && (a <= row) == (b <= row)
        };
        let is_like = aval.dtype == known.dtype
            && aval.shape.rank() == known.shape.rank()
            && aval.shape.iter().zip(known.shape.iter()).all(is_near)
            && (bytes(aval) < LARGE) == (bytes(known) < LARGE)
            && aval.shape.size().max(known.shape.size()) < FARTHEST;
        let as_steps = |aval: &Aval| aval.shape.iter().map(|&d| d as isize).collect::<Strides>();
        is_like.then(|| self.pair(&as_steps(known), &as_steps(aval)))?
    }

    /// Notes what numbers become. None where one becomes two, or two one.
    fn pair(&mut self, old: &[isize], new: &[isize]) -> Option<()> {
        for pair in old.iter().copied().zip(new.iter().copied()).filter(|(old, new)| old != new) {
            let is_half = |known: &(isize, isize)| (known.0 == pair.0) != (known.1 == pair.1);
            if self.0.iter().any(is_half) {
                return None;
            }
            if !self.0.contains(&pair) {
                self.0.push(pair);
            }
        }
        Some(())
    }

    /// Whether nothing that stays as it is is one of them.
    fn are_apart(&self, now: &Resizing<'_>) -> bool {
        let is_other = |number: isize| self.0.iter().all(|&(a, b)| number != a && number != b);
        let of_node = |((_, avals, _), known): (&(&Op, &[Aval], bool), &Kept)| {
            let mut values = avals.iter().zip(&known.avals).zip(&known.homes);
            values.all(|((aval, known), home)| {
                let mut sizes = aval.shape.iter().zip(known.shape.iter());
                let mut steps = home.iter().flat_map(|home| &home.strides);
                sizes.all(|(&a, &b)| a != b || is_other(a as isize))
                    && (aval != known || steps.all(|&step| is_other(step)))
            })
        };
        now.nodes.iter().zip(&now.template.nodes).all(of_node)
    }
}
