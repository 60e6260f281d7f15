"""The papers' figures by name, in the order in which they run and stand on the page."""

from papers import merging, model, scale, transparent

FIGURES = {figure.key: figure for figure in [*transparent.FIGURES, *model.FIGURES, *merging.FIGURES, *scale.FIGURES]}
