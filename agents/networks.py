"""Networks that score candidates: from an observation to logits of every action part and a value.

`candidates`: a shared scorer over candidates. Waiting and running jobs are embedded row by row by shared weights; the
cluster attends over all of them; each legal candidate is scored from its own features, its job's embedding and the
result of the attention. Permuting the jobs permutes the scores, and nothing depends on the number of slots or on the
size of the cluster, so the same weights serve any.

`mlp`: two dense layers over everything but the candidates' features, of which it sees only the legality.

A user's own, `py:FILE.py:NAME`, is a class like these: made as `NAME(tables, **options)`, with `critic=False` where it
takes that and no values are needed; `forward(observation, legal)` as here. It may have `values(observation)`,
`calibrate(observation)` before learning, and `soften(factor)` after imitation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..envs.observation_layout import Tables
from ..simulator.base.errors import InputError
from ..simulator.base.names import arguments_of, choose
from ..simulator.files.user_code import is_user_code, own

LOWEST = -1e9  # logit of what is not legal: its probability is exactly 0 in float32
LEGAL = 0  # column of the candidates' features, in every environment
VALUE_SCALE = 0.1  # of sums over some ten rows
LEAST_SPREAD = 0.01  # a feature that hardly varies is not magnified,
CONSTANT, IGNORED = 1e-6, 1e9  # and a constant one, such as slack without deadlines, is ignored


class Standard(nn.Module):
    """Features scaled to mean 0 and spread 1 of a sample; `squash`: far ones (long run times) by their logarithm."""

    mean: Tensor
    spread: Tensor

    def __init__(self, columns: int, squash: bool = False) -> None:
        super().__init__()
        self.squash = squash
        self.register_buffer("mean", torch.zeros(columns))
        self.register_buffer("spread", torch.ones(columns))

    def calibrate(self, rows: Tensor) -> None:
        """Take mean and spread from `rows` (n, columns), if there are any."""
        if len(rows):
            self.mean.copy_(rows.mean(0))
            spread = rows.std(0, correction=0)
            spread = torch.where(spread < CONSTANT, IGNORED, spread.clamp(min=LEAST_SPREAD))
            self.spread.copy_(spread)

    def forward(self, rows: Tensor) -> Tensor:
        """Rows (..., columns), scaled."""
        scaled = (rows - self.mean) / self.spread
        return torch.copysign(scaled.abs().log1p(), scaled) if self.squash else scaled


class ValueScorer(nn.Module):
    """Scores the values of a part from features of each, by weights that all values share.

    The layers see each feature, the feature less the least of all values, and less their mean, since an excess at a
    rotation matters in comparison.
    """

    def __init__(self, features: int, width: int, squash: bool = False) -> None:
        super().__init__()
        self.standard = Standard(3 * features, squash)
        self.value = nn.Linear(3 * features, width)
        self.of_context = nn.Linear(width, width, bias=False)
        self.score = nn.Linear(width, 1)
        nn.init.orthogonal_(self.score.weight)
        nn.init.zeros_(self.score.bias)

    def forward(self, values: Tensor, context: Tensor) -> Tensor:
        """Scores (n, values) from features (n, values, features) and context (n, width)."""
        hidden = self.value(self.standard(self.compared(values))) + self.of_context(context).unsqueeze(1)
        return self.score(functional.relu(hidden)).squeeze(2)

    @staticmethod
    def compared(values: Tensor) -> Tensor:
        """Features, and their differences from the least and from the mean: (n, values, 3 features)."""
        return torch.cat([values, values - values.amin(1, keepdim=True), values - values.mean(1, keepdim=True)], 2)


class CandidateNetwork(nn.Module):
    """The scorer of candidates; see the module.

    Args:
        tables: layout of the observation.
        width: of all embeddings.
        heads: of the attention.
        hold_logit: initial logit of a hold, beside a start's 0: holds cost learning where they are as likely as a
            start.
        squash: as of `Standard`; older agents have none.
        critic: False: no values are learned, and they are 0.
    """

    row_of: Tensor

    def __init__(
        self,
        tables: Tables,
        width: int = 32,
        heads: int = 4,
        hold_logit: float = -3.0,
        squash: bool = False,
        *,
        critic: bool = True,
    ) -> None:
        super().__init__()
        self.tables, self.heads, self.width = tables, heads, width
        self.standard_rows: Any = nn.ModuleList(Standard(table.columns, squash) for table in tables.tables)
        self.standard_cluster = Standard(tables.cluster, squash)
        self.standard_candidate = Standard(tables.candidate_columns, squash)
        self.rows = nn.ModuleList(nn.Linear(table.columns, width) for table in tables.tables)
        self.cluster = nn.Linear(tables.cluster, width)
        self.question = nn.Linear(width, heads * width)
        self.context = nn.Linear((1 + heads) * width, width)
        self.candidate = nn.Linear(tables.candidate_columns, width)
        self.of_row = nn.Linear(width, width, bias=False)
        self.of_context = nn.Linear(width, width, bias=False)
        self.hidden = nn.Linear(width, width)
        self.score = nn.Linear(width, 1)
        self.parts: Any = nn.ModuleList(nn.Linear(width, part.size) for part in tables.parts)
        self.valued: Any = nn.ModuleList(
            ValueScorer(part.features, width, squash) if part.features else nn.Identity() for part in tables.parts
        )
        self.critic = critic
        if critic:
            self.value_rows = nn.ModuleList(nn.Linear(table.columns, width) for table in tables.tables)
            pooled = (1 + len(tables.tables)) * width
            self.value_cluster = nn.Linear(tables.cluster, width)
            self.value = nn.Sequential(nn.Linear(pooled, 2 * width), nn.ReLU(), nn.Linear(2 * width, 1))
        self.hold_logit = nn.Parameter(torch.tensor(hold_logit))
        for last in (self.score, *self.parts):
            nn.init.orthogonal_(last.weight)  # smaller ones pass too little gradient to the layers below
            nn.init.zeros_(last.bias)
        row_of = [-1] * (1 + tables.plans)  # no job's: candidates that advance, or place all jobs
        first = 0
        for table in tables.tables:
            row_of += [first + row for row in range(table.rows) for _ in range(table.kinds)]
            first += table.rows
        self.register_buffer("row_of", torch.tensor(row_of), persistent=False)

    def forward(self, observation: Tensor, legal: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits of legal candidates (n, C) and of other parts (n, P in all), values (n,); from float32 (n, size)."""
        cluster, tables, taken = self._split(observation)
        rows, looked = self._look(cluster, tables, torch.cat(taken, 1))
        context = functional.relu(self.context(looked))
        batch, count, width = rows.shape
        which, what = legal.nonzero(as_tuple=True)
        row = self.row_of[what]
        own = rows.reshape(batch * count, width).index_select(0, which * count + row.clamp(min=0))
        features = observation[:, -self.tables.candidates * self.tables.candidate_columns :]
        features = features.view(batch, self.tables.candidates, -1)[which, what]
        hidden = self.candidate(self.standard_candidate(features)) + self.of_row(own * (row >= 0).unsqueeze(1))
        hidden = hidden + self.of_context(context).index_select(0, which)
        hidden = functional.relu(self.hidden(functional.relu(hidden)))
        scores = self.score(hidden).squeeze(1)
        if self.tables.hold_column is not None:
            scores = scores + self.hold_logit * features[:, self.tables.hold_column]
        logits = scores.new_full(legal.shape, LOWEST).index_put((which, what), scores)
        parts = self._part_scores(observation, context)
        return logits, parts, self._value(cluster, tables, taken)

    def _part_scores(self, observation: Tensor, context: Tensor) -> Tensor:
        scores = [context.new_zeros(len(context), 0)]
        values = self._values_of_parts(observation)
        for part, seen, layer, scorer in zip(self.tables.parts, values, self.parts, self.valued, strict=True):
            scores.append(layer(context) + scorer(seen, context) if part.features else layer(context))
        return torch.cat(scores, 1)

    def _values_of_parts(self, observation: Tensor) -> list[Tensor]:
        place = self.tables.cluster + sum(table.rows * table.columns for table in self.tables.tables)
        found = []
        for part in self.tables.parts:
            end = place + part.size * part.features
            found.append(observation[:, place:end].reshape(len(observation), part.size, part.features))
            place = end
        return found

    def values(self, observation: Tensor) -> Tensor:
        """Values (n,) only."""
        return self._value(*self._split(observation))

    def calibrate(self, observation: Tensor) -> None:
        """Scale features by their spread in a sample (n, size), before learning."""
        cluster, place = self.tables.cluster, self.tables.cluster
        self.standard_cluster.calibrate(observation[:, :cluster])
        for table, standard in zip(self.tables.tables, self.standard_rows, strict=True):
            end = place + table.rows * table.columns
            rows = observation[:, place:end].reshape(-1, table.columns)
            standard.calibrate(rows[rows[:, 0] > 0.0])
            place = end
        rows = observation[:, -self.tables.candidates * self.tables.candidate_columns :]
        rows = rows.reshape(-1, self.tables.candidate_columns)
        self.standard_candidate.calibrate(rows[rows[:, LEGAL] > 0.0])
        for part, seen, scorer in zip(self.tables.parts, self._values_of_parts(observation), self.valued, strict=True):
            if part.features:
                used = seen[(seen > 0.0).flatten(1).any(1)]
                scorer.standard.calibrate(scorer.compared(used).flatten(0, 1) if len(used) else used.flatten(0, 1))

    def soften(self, factor: float) -> None:
        """Divide the logits by `factor`."""
        valued = [scorer.score for scorer in self.valued if isinstance(scorer, ValueScorer)]
        _divide([self.score, *self.parts, *valued], factor)
        with torch.no_grad():
            self.hold_logit.div_(factor)

    def _split(self, observation: Tensor) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Features of the cluster and of the rows of each table (n, rows, columns), and which are taken (n, rows)."""
        place = self.tables.cluster
        cluster = self.standard_cluster(observation[:, :place])
        tables, taken = [], []
        for table, standard in zip(self.tables.tables, self.standard_rows, strict=True):
            end = place + table.rows * table.columns
            rows = observation[:, place:end].view(len(observation), table.rows, table.columns)
            taken.append(rows[:, :, 0])
            tables.append(standard(rows))
            place = end
        return cluster, tables, taken

    def _look(self, cluster: Tensor, tables: list[Tensor], taken: Tensor) -> tuple[Tensor, Tensor]:
        """Embeddings of the rows (n, rows, width), and of the cluster with the answers of its heads.

        A head's keys and values are the embeddings themselves; only questions and the use of answers are learned, so
        attention costs little beside embedding the rows.
        """
        cluster = functional.relu(self.cluster(cluster))
        embedded = [functional.relu(embed(features)) for features, embed in zip(tables, self.rows, strict=True)]
        rows = torch.cat(embedded, 1)
        questions = self.question(cluster).view(len(rows), self.heads, self.width) * self.width**-0.5
        taken = taken.unsqueeze(1)
        weights = (questions @ rows.transpose(1, 2)).masked_fill(taken == 0.0, LOWEST).softmax(2)
        seen = (weights * taken) @ rows
        return rows, torch.cat([cluster, seen.view(len(rows), -1)], 1)

    def _value(self, cluster: Tensor, tables: list[Tensor], taken: list[Tensor]) -> Tensor:
        """Values (n,), by layers of their own: the cluster, and the sum of the rows of each table.

        In shared layers the errors of values, far larger, would drown those of actions.
        """
        if not self.critic:
            return cluster.new_zeros(len(cluster))
        seen = [functional.relu(self.value_cluster(cluster))]
        for features, here, embed in zip(tables, taken, self.value_rows, strict=True):
            seen.append((functional.relu(embed(features)) * here.unsqueeze(2)).sum(1) * VALUE_SCALE)
        return self.value(torch.cat(seen, 1)).squeeze(1)


class DenseNetwork(nn.Module):
    """The plain MLP; see the module. `width`: of both layers of policy and value; the rest as of `CandidateNetwork`."""

    OWN = (LEGAL,)
    places: Tensor

    def __init__(self, tables: Tables, width: int = 64, squash: bool = False, *, critic: bool = True) -> None:
        super().__init__()
        self.tables = tables
        places = list(range(tables.size - tables.candidates * tables.candidate_columns))
        first = len(places)
        for candidate in range(tables.candidates):
            places += [first + candidate * tables.candidate_columns + column for column in self.OWN]
        self.register_buffer("places", torch.tensor(places), persistent=False)
        self.standard = Standard(len(places), squash)
        self.actor = _dense(len(places), width)
        self.score = nn.Linear(width, tables.candidates + sum(part.size for part in tables.parts))
        nn.init.orthogonal_(self.score.weight, 0.01)
        nn.init.zeros_(self.score.bias)
        self.critic = nn.Sequential(*_dense(len(places), width), nn.Linear(width, 1)) if critic else None

    def forward(self, observation: Tensor, legal: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `CandidateNetwork.forward`."""
        seen = self._seen(observation)
        scores = self.score(self.actor(seen))
        logits, parts = scores.split([self.tables.candidates, scores.shape[1] - self.tables.candidates], 1)
        return logits.masked_fill(~legal, LOWEST), parts, self._value(seen)

    def values(self, observation: Tensor) -> Tensor:
        """Values (n,) only."""
        return self._value(self._seen(observation))

    def calibrate(self, observation: Tensor) -> None:
        """As `CandidateNetwork.calibrate`."""
        self.standard.calibrate(observation.index_select(1, self.places))

    def _seen(self, observation: Tensor) -> Tensor:
        return self.standard(observation.index_select(1, self.places))

    def _value(self, seen: Tensor) -> Tensor:
        return seen.new_zeros(len(seen)) if self.critic is None else self.critic(seen).squeeze(-1)

    def soften(self, factor: float) -> None:
        """Divide the logits by `factor`."""
        _divide([self.score], factor)


def _dense(inputs: int, width: int) -> nn.Sequential:
    first, second = nn.Linear(inputs, width), nn.Linear(width, width)
    for layer in (first, second):
        nn.init.orthogonal_(layer.weight, 2**0.5)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(first, nn.Tanh(), second, nn.Tanh())


def _divide(layers: Sequence[nn.Linear], factor: float) -> None:
    with torch.no_grad():
        for layer in layers:
            layer.weight.div_(factor)
            layer.bias.div_(factor)


NETWORKS: dict[str, Any] = {"candidates": CandidateNetwork, "mlp": DenseNetwork}


def network_class(name: str) -> tuple[Any, dict[str, str]]:
    """The class of a network, by name or a user's word, and the word's options as text; InputError: no such class."""
    if not is_user_code(name):
        return NETWORKS[choose(name, NETWORKS, "network")], {}
    found = own(name, "network")
    if not (isinstance(found.factory, type) and issubclass(found.factory, nn.Module)):
        raise InputError(f"{found}: expected a class of torch.nn.Module: docs/tutorials/training.md")
    return found.factory, dict(found.params)


def make_network(name: str, tables: Tables, options: Mapping[str, Any], critic: bool) -> Any:
    """A network by name; see `network_class`."""
    kind, given = network_class(name)
    critic_option = {"critic": critic} if "critic" in signature(kind).parameters else {}
    values = arguments_of(partial(kind, tables), {**given, **options, **critic_option}, f"network {name}")
    return kind(tables, **{**values, **options})  # options from a file are typed already
