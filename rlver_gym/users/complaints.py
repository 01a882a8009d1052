"""What a model is told when its answer cannot be used, in the language of the person it plays."""

from __future__ import annotations

from rlver_gym.types import Language

_COMPLAINTS: dict[str, tuple[str, str]] = {
    "empty": ("the answer was empty", "回答是空的"),
    "missing": ('there was no "{field}"', "缺了“{field}”这一项"),
    "doubled": ('"{field}" was given more than once', "“{field}”给了不止一次"),
    "broken": ("the JSON object was broken", "JSON 对象写坏了"),
    "text": ('"{field}" was not a text', "“{field}”不是文字"),
    "number": ('"{field}" was not one whole number from -10 to 10', "“{field}”不是一个 -10 到 10 的整数"),
    "pairs": ('"{field}" was not a list of pairs', "“{field}”不是成对的列表"),
    "long": ("it was too long, write one to three short sentences", "太长了，写一到三个短句"),
    "leak": ("it said aloud what you secretly want or think", "把心里藏着的愿望或想法说破了"),
    "copies_reply": ("it repeated the other's message", "照抄了对方的话"),
    "repeat": ("you wrote the very same before", "和你前面写过的一模一样"),
    "vocabulary": ("it spoke of notes, numbers or playing a part", "提到了说明、数字或者扮演"),
    "refusal": ("you are this person, not an assistant", "你就是这个人，不是助手"),
    "helper": ("you are the one with something on your mind, not the one who helps", "有心事的是你，你不是来帮对方的"),
    "language": ("write in English", "要用中文写"),
}


def complaint(problem: str, language: Language, field: str = "") -> str:
    """A problem in words fit for asking again.

    Args:
        problem: its name.
        language: of the prompt that the words go into.
        field: the field of the answer that it is about, where it is about one.
    """
    english, chinese = _COMPLAINTS[problem]
    return (chinese if language == "zh" else english).format(field=field)
