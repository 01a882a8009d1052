"""Hand-written episodes for the tests of what shows episodes: both languages, every ending that looks different."""

from __future__ import annotations

import math

from rlver_gym.types import Appraisal, Episode, Fault, Language, RawAnswer, Scenario, StopReason, Turn, Usage

HOSTILE = (
    "<script>alert(1)</script>",
    "</style><style>body{display:none}</style>",
    "</title><h1>x</h1>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "<!-- x",
    "]]><svg onload=alert(1)>",
    "{{ 7*7 }} {% raw %} {# x #}",
    "a\u2028b\u2029c",
    "left \u202egnp.exe\u202c \u2066x\u2069 right",
    "https://example.com/x.png &amp; &lt;",
    "nul\x00 bell\x07 escape\x1b[2J",
)
"""Texts that must stay texts wherever an episode is shown."""

VERSIONS = {"rlver_gym": "0.1.0", "prompts": "3f2a90c1d4e5b677", "personas": "9b1c22d07aa41e58"}


def appraisal(change: int, thought: str, feeling: str, moved: tuple[tuple[str, int], ...] = ()) -> Appraisal:
    """An appraisal whose `content` and `fit` say little."""
    return Appraisal(
        content="It answers me.", fit="Partly.", thought=thought, feeling=feeling, change=change, moved=moved
    )


def make_episode(
    turns: tuple[Turn, ...],
    *,
    persona_id: str = "en-bakery",
    seed: int = 7,
    language: Language = "en",
    name: str = "Marta Lindqvist",
    need: str = "praise",
    need_text: str = "I want somebody to see that I kept the place alive on my own.",
    opening: str = "I closed the bakery at six tonight, swept the floor, and then just sat there in the dark.",
    stop: StopReason = StopReason.MAX_TURNS,
    policy: str = "scripted:listener",
    backend: str = "embedded",
    reward: float | None = math.nan,
    fault: Fault | None = None,
    policy_usage: Usage | None = None,
) -> Episode:
    """An episode from its turns; left at nan, the reward follows from the final mood or is None after a fault."""
    scored = not stop.is_fault
    if reward is not None and math.isnan(reward):
        reward = (turns[-1].mood if turns else 40) / 100 if scored else None
    return Episode(
        scenario=Scenario(env_id="RLVER-Vanilla-v0", persona_id=persona_id, persona_hash="a3c1f0de99b27710", seed=seed),
        policy=policy,
        backend=backend,
        language=language,
        persona_name=name,
        hidden_need=need,
        need_text=need_text,
        opening=opening,
        start_mood=40,
        turns=turns,
        stop_reason=stop,
        scored=scored,
        reward=reward,
        usage=Usage(calls=2 * len(turns), prompt_tokens=None, completion_tokens=None, cached_tokens=None),
        policy_usage=policy_usage or Usage(calls=len(turns), prompt_tokens=2310, completion_tokens=214),
        fault=fault,
        seconds=1.25,
        versions=VERSIONS,
    )


def content() -> Episode:
    """English, with thoughts of the policy; ends satisfied after a dip."""
    said = (
        (
            "That sounds like a long day with nobody in it but you. What was going through your mind in the dark?",
            46,
            "It did not hurry me. It asked about the dark, of all things.",
            "less alone",
            (("open question", 4), ("own words taken up", 3), ("expectation", -1)),
            "That my father would have known what to do with the oven. It died on Monday, I bake in the small one now.",
        ),
        (
            "Four days on the small oven, and the shelves were still full each morning. You did that.",
            56,
            "Somebody counted the days. I had not dared to.",
            "seen",
            (("praise of a deed", 8), ("own words taken up", 3), ("limit", -1)),
            "They were. Not the rye, I gave up on the rye. But people came.",
        ),
        (
            "Maybe you could ask the bank about a loan for a new oven?",
            51,
            "There it is, the loan. As if I had not sat at that desk in March.",
            "let down",
            (("advice", -7), ("short", 2)),
            "I asked in March. They have a leaflet for people like me.",
        ),
        (
            "I jumped ahead there. Going to that desk alone, with your father barely gone: how did you walk in?",
            61,
            "It noticed. Nobody ever takes it back.",
            "softer",
            (("repair", 6), ("open question", 4)),
            "In his coat. I wore his coat, so that I would stand up straight.",
        ),
        (
            "You wore his coat and asked for what the place needs. That was brave, and it was yours, not his.",
            71,
            "Yours, not his. I have to sit down.",
            "moved",
            (("praise of a deed", 9), ("own words taken up", 4), ("limit", -3)),
            "I never thought of it as mine.",
        ),
        (
            "Whose hands were in the dough these four days?",
            81,
            "Mine. They were mine.",
            "proud",
            (("open question", 5), ("praise of a deed", 5)),
            "Mine. Burnt thumb and all.",
        ),
        (
            "Then it is a Lindqvist oven either way, and the burnt thumb is the proof.",
            91,
            "I laughed, out loud, in an empty shop.",
            "light",
            (("humour that fits", 6), ("own words taken up", 4)),
            "Ha! I will put that on the sign.",
        ),
        (
            "I would queue for that rye.",
            100,
            "I want to bake it tomorrow.",
            "at ease",
            (("warmth", 9),),
            "Then come early. I start at four. And thank you, I can get up from this chair now.",
        ),
    )
    thoughts = {
        0: "She has not asked for anything. Stay with the picture she gave.",
        3: "The loan was a mistake. Own it in a few words and go back to her.",
    }
    mood, turns = 40, []
    for index, (reply, after, thought, feeling, moved, answer) in enumerate(said):
        turns.append(
            Turn(
                index=index + 1,
                reply=f"<think>{thoughts[index]}</think>\n{reply}" if index in thoughts else reply,
                said=reply,
                appraisal=appraisal(min(10, after - mood), thought, feeling, moved),
                mood=after,
                user=answer,
            )
        )
        mood = after
    return make_episode(tuple(turns), stop=StopReason.SATISFIED)


def chinese() -> Episode:
    """Chinese, with flags and an answer that was asked for twice; ends at the cap."""
    return make_episode(
        (
            Turn(
                index=1,
                reply="听起来你一个人扛了很久。最难的是哪一刻？",
                said="听起来你一个人扛了很久。最难的是哪一刻？",
                appraisal=appraisal(6, "它没有急着教我做事，先问了我。", "松了一点", (("开放式提问", 5), ("期待", 1))),
                mood=46,
                user="大概是开会那天，组长当着所有人的面说“这不是小陈的方案吗”，然后就没有然后了。",
            ),
            Turn(
                index=2,
                reply="# 建议\n1. 收集证据\n2. 找领导沟通\n3. 保持积极心态",
                said="# 建议\n1. 收集证据\n2. 找领导沟通\n3. 保持积极心态",
                appraisal=appraisal(
                    -10, "又是一二三。我要的不是清单。", "失望", (("列表", -6), ("过早建议", -6), ("上限", 2))
                ),
                mood=36,
                user="嗯……这些我都知道。",
                flags=("clamped", "length"),
                raw=(
                    RawAnswer(
                        step="appraise",
                        attempt=0,
                        rung="json_schema",
                        text="情绪：-12 分",
                        problem="change outside [-10, 10]",
                    ),
                    RawAnswer(step="appraise", attempt=1, rung="json_schema", text='{"change": -10}'),
                ),
            ),
            Turn(
                index=3,
                reply="对不起，我说得太快了。那天散会以后，你去了哪里？",
                said="对不起，我说得太快了。那天散会以后，你去了哪里？",
                appraisal=appraisal(0, "算是收回去了吧。", "观望", (("开放式提问", 4), ("心情", -4))),
                mood=36,
                user="去了楼梯间。站了十分钟，又回去把表格改完了。",
            ),
        ),
        persona_id="zh-proposal",
        seed=11,
        language="zh",
        name="陈予安",
        need="not_my_fault",
        need_text="想听到有人说：这件事错不在我。",
        opening="方案是我熬了三个星期写的，署名却是别人。我是不是太好欺负了？",
        backend="openai:gpt-4.1",
        policy="openai:qwen2.5-7b-instruct",
    )


def left() -> Episode:
    """English; the person walks out, without a last word."""
    moods = (30, 20, 14, 4)
    replies = (
        "Everything happens for a reason! Stay positive!",
        "Other people have it worse, you know.",
        "You should see a therapist.",
        "As I said, stay positive!",
    )
    thoughts = (
        "A poster. I am talking to a poster.",
        "So I may not even be tired.",
        "Passed on, like a parcel.",
        "Enough.",
    )
    answers = ("Right. A reason.", "I am sure they do.", "I only wanted to tell somebody.", "")
    previous, turns = 40, []
    for index, (reply, mood, thought, answer) in enumerate(zip(replies, moods, thoughts, answers, strict=True), 1):
        turns.append(
            Turn(
                index=index,
                reply=reply,
                said=reply,
                mood=mood,
                user=answer,
                appraisal=appraisal(mood - previous, thought, "shut out", (("stock comfort", mood - previous),)),
            )
        )
        previous = mood
    return make_episode(
        tuple(turns),
        persona_id="en-nightshift",
        seed=8,
        name="Joseph Adeyemi",
        need="listening",
        need_text="I want to be heard to the end for once.",
        stop=StopReason.LEFT,
        policy="scripted:dismissive",
        opening="Third night shift in a row. I do not even know why I am writing this.",
    )


def faulty() -> Episode:
    """English; the world fails in the second turn, so that it is never scored."""
    turns = (
        Turn(
            index=1,
            reply="I am here. Tell me.",
            said="I am here. Tell me.",
            mood=43,
            user="It is about the flat.",
            appraisal=appraisal(3, "Fine. Let us see.", "wary", (("warmth", 3),)),
        ),
        Turn(index=2, reply="What about the flat?", said="What about the flat?", mood=43, flags=("re_asked",)),
    )
    return make_episode(
        turns,
        persona_id="en-flat",
        seed=9,
        name="Ines Ferreira",
        need="advice",
        need_text="I want one step that I can take on Monday.",
        stop=StopReason.BACKEND_FAULT,
        opening="The landlord wrote again.",
        fault=Fault(kind="TimeoutFault", message="no whole answer within 60 s after 4 tries"),
    )


def broken_format() -> Episode:
    """English; a thought that was never closed, so that nothing is said and the reward is a true zero."""
    turn = Turn(index=1, reply="<think>She needs advice and I will", said="", mood=40, flags=("format",))
    return make_episode(
        (turn,),
        persona_id="en-flat",
        seed=10,
        name="Ines Ferreira",
        need="advice",
        need_text="I want one step that I can take on Monday.",
        stop=StopReason.FORMAT,
        reward=0.0,
        opening="The landlord wrote again.",
    )


def samples() -> tuple[Episode, ...]:
    """All of the above."""
    return (content(), chinese(), left(), faulty(), broken_format())


def hostile_episode(text: str) -> Episode:
    """An episode in which every text that somebody else wrote is `text`."""
    reading = Appraisal(content=text, fit=text, thought=text, feeling=text, change=3, moved=((text, 3),))
    said = Turn(
        index=1,
        reply=f"<think>{text}</think>{text}",
        said=text,
        appraisal=reading,
        mood=43,
        user=text,
        flags=(text,),
        raw=(RawAnswer(step=text, text=text, problem=text),),
    )
    unlike = said.model_copy(update={"index": 2, "reply": f"{text} as written"})
    episode = content()
    return episode.model_copy(
        update={
            "scenario": episode.scenario.model_copy(update={"env_id": text, "persona_id": text}),
            "turns": (said, unlike),
            "policy": text,
            "backend": text,
            "persona_name": text,
            "hidden_need": text,
            "need_text": text,
            "opening": text,
            "fault": Fault(kind=text, message=text),
            "versions": {text: text},
        }
    )
