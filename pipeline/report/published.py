"""What the ChatCite paper printed (arXiv 2403.02574v1), beside which a report sets its own. Never numbers of ours."""

from __future__ import annotations

from dataclasses import dataclass

JUDGE = "gpt-4-turbo-preview"
WRITER = "gpt-3.5-turbo-1106"
DATA = "50 computer-science papers (NudtRwG-Citation, cited 63.59 times each on average)"
ARXIV_ID = "2403.02574"


@dataclass(frozen=True, slots=True)
class Printed:
    """One row of the paper's tables: ROUGE F1 and preference in percent, G-Score from 1 to 5."""

    name: str
    model: str
    rouge1: float
    rouge2: float
    rouge_l: float
    g_score: float
    preference: float


TABLE_1: tuple[Printed, ...] = (
    Printed("zero-shot", WRITER, 26.01, 6.11, 24.02, 3.4102, 2.21),
    Printed("few-shot", WRITER, 25.84, 6.01, 23.55, 3.5968, 10.80),
    Printed("zero-shot", JUDGE, 30.02, 8.03, 27.97, 3.5076, 26.40),
    Printed("few-shot", JUDGE, 15.52, 1.78, 14.20, 1.6621, 0.21),
    Printed("LitLLM", JUDGE, 27.08, 6.07, 24.94, 3.5448, 24.51),
    Printed("ChatCite", WRITER, 25.30, 6.36, 23.13, 4.0642, 35.86),
)
TABLE_2: tuple[Printed, ...] = (
    Printed("few-shot", WRITER, 25.84, 6.01, 23.55, 3.2426, 2.84),
    Printed("ChatCite without key elements", WRITER, 24.38, 5.81, 22.36, 4.0016, 22.11),
    Printed("ChatCite without incremental steps", WRITER, 24.72, 5.93, 22.40, 3.8195, 35.34),
    Printed("ChatCite", WRITER, 25.30, 6.36, 23.13, 4.1064, 39.71),
)
# Which of our systems stand beside which table; `chatcite_grounded` and `chatcite_no_reflection` are in neither of the
# paper's tables, and stand where they are compared: with other methods, and with other parts taken out.
SYSTEMS_1 = ("zero_shot", "few_shot", "litllm", "chatcite", "chatcite_grounded", "extractive", "lead", "lexrank")
SYSTEMS_2 = (
    "few_shot", "chatcite_no_elements", "chatcite_no_incremental", "chatcite_no_reflection", "chatcite",
)  # fmt: skip
