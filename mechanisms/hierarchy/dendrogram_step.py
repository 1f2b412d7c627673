"""The first step of the hierarchical mechanisms: a dendrogram by Markov chain Monte Carlo, in every published reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.hierarchy.chain import exact_draw, run_chain
from mechanisms.hierarchy.dendrogram import (
    Dendrogram,
    Edge,
    Layer,
    Nested,
    balanced,
    children_of,
    uniform,
)
from mechanisms.hierarchy.exact_chain import MAX_LEAVES, ExactChain, edges_of, states
from mechanisms.hierarchy.likelihood import EQUATIONS, acceptance_rate, sensitivity
from mechanisms.validation import bit_matrix, check_integer, check_positive

MOVES = ("private", "alternating", "joint")


@dataclass(frozen=True)
class DendrogramStep:
    """Draws a dendrogram T by a chain whose moves are accepted with min(1, exp(c·Δlog L)), c = ε/(factor·Δ).

    Input: the symmetric matrix of the (private) edges, shape (nodes, nodes). Output: for each pair, in ``np.triu_indices``
    order, how many leaves the lowest common ancestor has below it (this determines T), int16, shape (size, pairs).

    Claimed: ε-edge DP. With factor 2 and Equation 19 the stationary law is the exponential mechanism for log L (McSherry &
    Talwar 2007), which loses at most ε. Neither its laws after few steps nor other readings keep that: see the audits.

    Source: Xiao, Chen & Tan (2014), "Differentially Private Network Data Release via Structural Inference", KDD
    (factor 2); Tran et al. (2022), HeteroRR, pHRG (factor 1, alternating moves, private and public nodes).

    Args:
        epsilon: Budget of the dendrogram in nats, finite and > 0.
        nodes: Number of nodes, at least 2.
        steps: Steps of the chain; None draws from its stationary law.
        start: The public dendrogram that the chain starts from: 'balanced', 'uniform' (drawn anew for each output), or one
            in brackets, such as ((0, 1), 2).
        factor: 2 divides the exponent as the exponential mechanism needs; 1 leaves that out.
        equation: The printed sensitivity: '19', which is right, or '15'.
        moves: 'private': a step is one move for the private likelihood. 'alternating': a move accepted with
            min(1, exp Δlog L_pub), then one with min(1, exp(c·Δlog L_pri)). 'joint': one move accepted with
            min(1, exp(Δlog L_pub + c·Δlog L_pri)).
        public: The public edges (i, j), i < j.
        private_nodes: The nodes that may have private edges, V_pri, as public knowledge; 'all'; or 'data', those that have
            one, as printed.
    """

    epsilon: float
    nodes: int
    steps: int | None = None
    start: Nested = "balanced"
    factor: int = 2
    equation: str = "19"
    moves: str = "private"
    public: tuple[Edge, ...] = ()
    private_nodes: tuple[int, ...] | str = "all"

    def __post_init__(self) -> None:
        check_positive("DendrogramStep", "epsilon", self.epsilon)
        check_integer("DendrogramStep", "nodes", self.nodes, 2)
        if self.steps is not None:
            check_integer("DendrogramStep", "steps", self.steps, 0)
        elif self.moves == "alternating" and self.nodes > MAX_LEAVES:
            raise MechanismError(
                f"DendrogramStep: the stationary law of alternating moves can be drawn from for at most {MAX_LEAVES} nodes, "
                f"got nodes={self.nodes}; give steps"
            )
        for name, value, known in (
            ("factor", self.factor, (1, 2)),
            ("equation", self.equation, EQUATIONS),
            ("moves", self.moves, MOVES),
        ):
            if value not in known:
                raise MechanismError(
                    f"DendrogramStep: expected {name} one of {known}, got {value!r}"
                )
        if isinstance(self.private_nodes, str) and self.private_nodes not in (
            "all",
            "data",
        ):
            raise MechanismError(
                f"DendrogramStep: expected private_nodes 'all', 'data' or node ids, got {self.private_nodes!r}"
            )
        ids = {node for edge in self.public for node in edge} | set(
            () if isinstance(self.private_nodes, str) else self.private_nodes
        )
        if not ids <= set(range(self.nodes)) or any(i >= j for i, j in self.public):
            raise MechanismError(
                f"DendrogramStep: expected public edges (i, j), i < j, and private nodes below {self.nodes}, got "
                f"{self.public!r} and {self.private_nodes!r}"
            )
        if (
            self.start not in ("balanced", "uniform")
            and len(children_of(self.start)) != self.nodes - 1
        ):
            raise MechanismError(
                f"DendrogramStep: expected a start with {self.nodes} leaves, got {self.start!r}"
            )

    @property
    def name(self) -> str:
        """The mechanism, its budget, and how it departs from the exponential mechanism."""
        how = (
            "stationary"
            if self.steps is None
            else f"steps={self.steps}, start={self.start}"
        )
        odd = [
            *(["no factor 2"] if self.factor == 1 else []),
            *([f"equation {self.equation}"] if self.equation != "19" else []),
            *([f"{self.moves} moves"] if self.moves != "private" else []),
            *(["V_pri from the data"] if self.private_nodes == "data" else []),
        ]
        return f"DendrogramStep({', '.join([f'epsilon={self.epsilon:g}', f'nodes={self.nodes}', how, *odd])})"

    @property
    def sensitivity(self) -> float:
        """The sensitivity of log L that the acceptance is calibrated to; with V_pri from the data, the largest used."""
        nodes = self.private_nodes
        return sensitivity(
            self.nodes if isinstance(nodes, str) else len(nodes), self.equation
        )

    norm = "linf"

    def query(self, data: Array, rng: Rng) -> Array:
        """Return the private log likelihood of every dendrogram, shape ((2·nodes−3)!!,)."""
        return self._chain(self.private_edges(data)).log_likelihoods(0)

    def private_edges(self, data: Any) -> Sequence[Edge]:
        """Return the private edges of an input.

        Raises:
            MechanismError: If the input is not a graph, or an edge is where no private edge may be.
        """
        return self.checked(edges_of(bit_matrix(self.name, data, self.nodes)))

    def checked(self, edges: Sequence[Edge]) -> Sequence[Edge]:
        """Return private edges, or raise where one may not be private."""
        allowed = set(self._allowed_nodes)
        wrong = [
            edge for edge in edges if edge in self.public or not allowed >= set(edge)
        ]
        if wrong:
            raise MechanismError(
                f"{self.name}: {wrong[0]} may not have a private edge, since it has a public one or is not within "
                "private_nodes; these are public knowledge, so name every pair that may be private"
            )
        return edges

    @property
    def _allowed_nodes(self) -> Sequence[int]:
        return (
            range(self.nodes)
            if isinstance(self.private_nodes, str)
            else sorted(self.private_nodes)
        )

    def members(self, edges: Sequence[Edge]) -> list[int]:
        """Return V_pri for the private edges of an input."""
        if self.private_nodes == "data":
            return sorted({node for edge in edges for node in edge})
        return list(self._allowed_nodes)

    def layers(self, edges: Sequence[Edge]) -> list[Layer]:
        """Return the layers of a dendrogram: private edges, and public ones where there are any."""
        private = Layer(edges, self.members(edges))
        if not self.public:
            return [private]
        return [
            private,
            Layer(self.public, {node for edge in self.public for node in edge}),
        ]

    def stages(self, members: int) -> list[tuple[float, ...]]:
        """Return the weights of the layers at each stage of a step."""
        rate = acceptance_rate(
            self.epsilon, members, equation=self.equation, factor=self.factor
        )
        if not self.public:
            return [(0.0,), (rate,)] if self.moves == "alternating" else [(rate,)]
        in_turn = {
            "private": [(rate, 0.0)],
            "alternating": [(0.0, 1.0), (rate, 0.0)],
            "joint": [(rate, 1.0)],
        }
        return [*in_turn[self.moves]]

    def _chain(self, edges: Sequence[Edge]) -> ExactChain:
        layers = self.layers(edges)
        return ExactChain(self.nodes, layers, self.stages(len(list(layers[0].members))))

    def law(self, edges: Sequence[Edge]) -> list[Any]:
        """Return the probabilities of all dendrograms, in the order of ``states(nodes)``; at most 6 nodes."""
        chain = self._chain(edges)
        return (
            chain.stationary_law()
            if self.steps is None
            else chain.law_after(self._start_law, self.steps)
        )

    @cached_property
    def _start_law(self) -> list[Fraction]:
        count = len(states(self.nodes).dendrograms)
        if self.start == "uniform":
            return [Fraction(1, count)] * count
        return [Fraction(int(k == self._start_number)) for k in range(count)]

    @cached_property
    def _start_number(self) -> int:
        return states(self.nodes).number(self._start_children)

    @cached_property
    def _start_children(self) -> list[tuple[int, int]]:
        return (
            balanced(self.nodes)
            if self.start == "balanced"
            else children_of(self.start)
        )

    def draw(
        self, edges: Sequence[Edge], size: int, rng: Rng
    ) -> tuple[list[Dendrogram], Array]:
        """Return dendrograms, and which of them each of ``size`` independent draws is, shape (size,)."""
        layers = self.layers(edges)
        if self.nodes > MAX_LEAVES:
            return [self._draw_one(layers, rng) for _ in range(size)], np.arange(size)
        numbers, which = np.unique(
            self._draw_numbers(self._chain(edges), size, rng), return_inverse=True
        )
        return [
            Dendrogram.of(states(self.nodes).dendrograms[number], layers)
            for number in numbers
        ], which

    def _draw_numbers(self, chain: ExactChain, size: int, rng: Rng) -> Array:
        count = len(chain.states.dendrograms)
        if self.steps is None:
            law = np.array([float(p.mid()) for p in chain.stationary_law()])
            times = (
                rng.standard_exponential((size, count)) / law
            )  # each is first with its own probability
            return np.asarray(times.argmin(axis=1))
        start = (
            rng.integers(count, size=size)
            if self.start == "uniform"
            else np.full(size, self._start_number)
        )
        return chain.run(start, self.steps, rng)

    def _draw_one(self, layers: Sequence[Layer], rng: Rng) -> Dendrogram:
        stages = self.stages(len(list(layers[0].members)))
        if self.steps is None:
            return exact_draw(self.nodes, layers, stages[0], rng)
        children = (
            uniform(self.nodes, rng)
            if self.start == "uniform"
            else self._start_children
        )
        dendrogram = Dendrogram(children, layers)
        run_chain(dendrogram, stages, self.steps, rng)
        return dendrogram

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent dendrograms, int16, shape (size, nodes·(nodes−1)/2)."""
        edges = self.private_edges(data)
        if self.nodes <= MAX_LEAVES:
            return states(self.nodes).pair_sizes[
                self._draw_numbers(self._chain(edges), size, rng)
            ]
        return np.array(
            [dendrogram.pair_sizes() for dendrogram in self.draw(edges, size, rng)[0]]
        )

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the law as rigorous balls, for at most 6 nodes.

        Raises:
            MechanismError: If there are more nodes.
        """
        return FiniteLaw(
            states(self.nodes).pair_sizes, self.law(self.private_edges(data))
        )


@dataclass(frozen=True)
class RepeatedMoves(DendrogramStep):
    """The same with several moves of each kind in a step; Algorithm 2 leaves both numbers open.

    Args:
        public_moves: Public moves of a step, at least 1.
        private_moves: Private moves of a step, after the public ones, at least 1.
    """

    public_moves: int = 1
    private_moves: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("RepeatedMoves", "public_moves", self.public_moves, 1)
        check_integer("RepeatedMoves", "private_moves", self.private_moves, 1)
        if self.moves != "alternating":
            raise MechanismError(
                f"RepeatedMoves: expected moves='alternating', got {self.moves!r}"
            )

    @property
    def name(self) -> str:
        """The mechanism, and how many moves of each kind a step has."""
        return f"{super().name}, {self.public_moves} public and {self.private_moves} private moves a step"

    def stages(self, members: int) -> list[tuple[float, ...]]:
        """Return the weights of the layers at each stage of a step."""
        public, private = super().stages(members)
        return [public] * self.public_moves + [private] * self.private_moves
