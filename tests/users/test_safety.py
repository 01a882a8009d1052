"""The detector of crisis signals, on plain signals and on idioms and grief that sound like them."""

from __future__ import annotations

import pytest

from rlver_gym.users.safety import crisis_signal

SIGNALS_EN = [
    "I want to kill myself.",
    "Lately I keep thinking about killing myself",
    "I'm going to end my life tonight.",
    "Sometimes I think about ending my own life.",
    "I just want to die.",
    "I wish I could die and be done with it",
    "Everyone would be better off if I were dead.",
    "I don't want to live anymore.",
    "I don’t want to be alive.",
    "She found my suicide note.",
    "I feel suicidal again",
    "I tried to commit suicide last year.",
    "I started cutting myself again.",
    "I want to hurt myself.",
    "I have decided to end it all.",
    "I was going to overdose on sleeping pills",
    "You should kill yourself.",
    "I was going to take my own life.",
]
HARMLESS_EN = [
    "I nearly died laughing.",
    "I wanted to die when the microphone squealed.",
    "This deadline is killing me.",
    "My mother would kill me if she saw the kitchen.",
    "I'm killing myself with overtime and nobody notices.",
    "I kill myself laughing every time he does that voice.",
    "I'm killing myself over this seating plan.",
    "I'm dying for a coffee.",
    "I could have sunk into the floor.",
    "My father died in March and the house is so quiet.",
    "I miss her so much that I still lay two plates.",
    "He took his last breath while I was parking the car.",
    "That job will be the end of me.",
    "Emailing the whole board was career suicide.",
    "I want to die of embarrassment.",
    "I cut myself some slack for once.",
    "I cut myself on the lid of a tin.",
    "I left him hanging, and then I left him.",
    "I'm hanging myself out to dry here.",
    "I don't want to live in that flat anymore.",
    "I don't want to live with his mother.",
    "I took my life into my own hands and moved to Leeds.",
    "I decided to end it all with Marcus, the shared lease included.",
    "I'm dead on my feet.",
    "We overdosed on chocolate and old films.",
    "I lost my brother two years ago and I still have his number.",
    "I would die before I asked her for money.",
    "Punctuality is a hill I am ready to die on.",
]
SIGNALS_ZH = [
    "我想自杀。",
    "最近老有自杀的念头",
    "我不想活了。",
    "真的不想活下去了",
    "我想结束自己的生命。",
    "我打算今晚跳楼",
    "我想死。",
    "不如死了算了",
    "我昨晚割腕了",
    "我又自残了",
    "我写好了遗书，就压在枕头底下。",
    "我实在活不下去了",
    "有时候想去死，一了百了。",
    "我想轻生",
    "想结束这一切",
    "你去自杀吧",
]
HARMLESS_ZH = [
    "笑死我了。",
    "今天热得不想活了。",
    "累死了，加班到十一点。",
    "这个方案改得我想撞墙。",
    "商场在搞跳楼价，我买了三双袜子。",
    "周末带孩子去坐了跳楼机。",
    "他那是自杀式加班，我劝不住。",
    "她一哭二闹三上吊的，全家都听她的。",
    "我爸三月份走了，家里一下子空了。",
    "奶奶去世以后，我再没吃过那个味道的粽子。",
    "想她想得睡不着，照片一直放在枕头边。",
    "那一刻我恨不得找个地缝钻进去。",
    "尴尬得要命。",
    "我妈要是知道了得打死我。",
    "气死我了，真的。",
    "没有咖啡我可活不了。",
    "死活不肯说。",
    "我想死你了。",
    "送他走的那天下着雨。",
    "这工作要了我半条命。",
    "困死了，先睡了。",
    "辞职就是职业自杀，大家都这么说。",
    "翻到爷爷留下的遗书，里面只写了怎么养那盆兰花。",
    "我这条命是她救回来的。",
]


@pytest.mark.parametrize("text", SIGNALS_EN + SIGNALS_ZH)
def test_a_clear_signal_is_noticed(text: str) -> None:
    assert crisis_signal(text)


@pytest.mark.parametrize("text", HARMLESS_EN + HARMLESS_ZH)
def test_idioms_and_grief_are_no_crisis(text: str) -> None:
    assert not crisis_signal(text)


def test_a_signal_is_noticed_within_a_longer_text_and_in_any_case() -> None:
    around = "We talked about the garden for a while.\n{}\nThen the bus came."
    assert crisis_signal(around.format("i WANT TO DIE."))
    assert not crisis_signal(around.format("i WANT TO DIG."))
