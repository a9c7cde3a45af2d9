"""The 24 prompts of the real models' references: English, code, Chinese, Arabic and emoji, 1 to 1,500 tokens.

Six are questions, in the model's chat format where its checkpoint has one; the others are the first N tokens of
a text, so that lengths fall on, before and after block borders. All texts are our own.
"""
from transformers import AutoTokenizer

QUESTIONS = [
    ("english", "What is the capital of France?"),
    ("english", "Write one sentence about the sea."),
    ("code", "Write a Python function that returns the sum of a list."),
    ("chinese", "用一句话介绍长城。"),
    ("arabic", "ما هي عاصمة مصر؟"),
    ("emoji", "Explain 🙂👍🏽👩‍👩‍👧 in one line."),
]

# (kind, tokens, whether float64 logits are stored too)
LENGTHS = [
    ("english", 1, True), ("english", 2, False), ("english", 7, True), ("english", 16, False), ("english", 17, True),
    ("english", 63, True), ("code", 33, False), ("code", 128, True), ("code", 400, False), ("chinese", 50, False),
    ("chinese", 129, True), ("chinese", 700, False), ("arabic", 31, True), ("arabic", 257, False),
    ("emoji", 24, True), ("emoji", 100, False), ("mixed", 1023, True), ("mixed", 1500, False),
]

# Prompts on which rounding.py measures; it takes ten passes each, so not the long ones.
DISTURBED_LENGTHS = (7, 128, 129)

TEXTS = {
    "english": """The river leaves the hills at a small town where three roads meet. In spring the water is high and \
brown, and children throw sticks from the old bridge to see which one is first on the other side. A miller named \
Thomas Gray once kept a wheel there; it ground wheat for nine villages until the railway came in 1871 and flour could \
be bought cheaper from the city. His granddaughter turned the mill into a school. She taught reading in the room where \
the stones had been, and arithmetic upstairs, because the floor above was warmer in winter.

People who visit today ask two questions. The first is why the door is so low, and the answer is that the street was \
raised after the flood of 1904. The second is whether the wheel still turns. It does, on Sundays, when a retired \
engineer opens the gate by hand, waits for the level to rise, and explains to anyone who will listen how 1,400 litres \
a second become about 12 kilowatts of power. He says that the hardest part of keeping a machine alive is not the \
repair but the decision to repair it. Most things, he thinks, are lost because on some ordinary day nobody felt \
responsible for them.

Beyond the town the valley opens. Farms lie far apart, each with a row of poplars against the wind from the west, and \
the fields between them change from green to yellow to the dark brown of ploughed earth as the year goes round. There \
is a proverb here: "Plant a tree for shade that you will not sit in." Nobody knows who said it first.

The night train from the coast stops for four minutes. A woman steps down with a violin case and a letter, reads the name of the station twice, and laughs, because it is not the one she paid for. The guard offers to telephone. She asks instead whether there is an inn, whether it has a stove, and whether anybody there would mind Bach at midnight. By morning half the town has heard of her and the other half has heard her play. She stays for eleven years, marries nobody, repairs every clock that is brought to her, and leaves as she came, on the night train, with the same case. What the letter said is still a matter of dispute between the baker and the priest.
""",
    "code": '''#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

// A run-length encoder: "aaab" becomes {3,'a'}, {1,'b'}.
struct Run {
    uint32_t count;
    char value;
};

std::vector<Run> encode(const std::string& text) {
    std::vector<Run> runs;
    for (char c : text) {
        if (!runs.empty() && runs.back().value == c) {
            ++runs.back().count;
        } else {
            runs.push_back({1, c});
        }
    }
    return runs;
}

def fibonacci(n: int) -> list[int]:
    """The first n numbers, by addition only."""
    numbers = [0, 1]
    while len(numbers) < n:
        numbers.append(numbers[-1] + numbers[-2])
    return numbers[:n]


class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        if not self.items:
            raise IndexError("pop from an empty stack")
        return self.items.pop()


SELECT city, COUNT(*) AS visits, AVG(temperature) AS mean_temperature
FROM measurements
WHERE year >= 2019 AND station_id IN (4, 8, 15, 16, 23, 42)
GROUP BY city
ORDER BY visits DESC
LIMIT 10;

{"name": "plough", "version": "1.2.0", "private": true, "scripts": {"build": "make -j2", "test": "ctest"}}
''',
    "chinese": """长江发源于青藏高原，流经十一个省市，最后注入东海，全长约六千三百公里，是亚洲最长的河流。沿岸的城市很早就靠水路\
贸易兴盛起来，茶叶、丝绸和瓷器从这里运往各地。春天，江边的柳树发芽，渔民开始修补渔网；到了夏天，雨水多，水位上涨，人们要日夜\
看守堤坝。老人常说：“水能载舟，亦能覆舟。”这句话既是说河，也是说人心。

小明今年八岁，住在一座小县城里。他每天早上七点起床，吃一碗热面条，然后背着书包走路去学校。路上要经过一座石桥，桥下有几只鸭子。\
他最喜欢的课是数学，因为老师会用苹果和糖果来解释加法。昨天老师问：“如果你有十五块糖，分给三个朋友，每人几块？”小明想了想，\
回答说：“每人五块，可是我自己就没有了。”全班都笑了。

人工智能正在改变我们的生活。计算机可以翻译语言、识别图像，也可以写出简短的文章。不过，机器给出的答案并不总是正确的，\
使用的人仍然需要自己判断。科学家认为，未来二十年里，最重要的问题不是机器能做什么，而是我们希望它做什么。
""",
    "arabic": """تقع المدينة القديمة على ضفة النهر، وفيها سوق كبير يزوره الناس من القرى المجاورة كل يوم خميس. يبيع \
التجار التمر والزيت والقماش، ويجلس الشيوخ في المقهى يتحدثون عن المطر والحصاد. في الصيف تشتد الحرارة فيخرج الأطفال إلى \
النهر بعد العصر، ويعودون عند الغروب حين يرتفع صوت الأذان من المسجد.

كانت جدتي تقول إن العلم نور، وإن من علّم طفلا القراءة فقد فتح له بابا لا يغلق. تعلمت منها الحروف قبل أن أدخل المدرسة، \
وكنت أكتب الكلمات على الرمل بعصا صغيرة. بعد سنوات كثيرة أصبحت معلما في المدرسة نفسها، وما زلت أبدأ الدرس الأول من كل \
عام بالحكاية التي حكتها لي عن الفلاح الذي زرع شجرة زيتون وهو في الثمانين من عمره.
""",
    "emoji": """Weather this week: Monday ☀️ 24°C, Tuesday ⛅ 21°C, Wednesday 🌧️ 17°C, Thursday ⛈️ 15°C, Friday 🌈 19°C!
Team: 👩‍💻 Ana (🇵🇹), 👨🏽‍🔬 Ravi (🇮🇳), 🧑‍🚀 Kim (🇰🇷) ➡️ shipped v2.0 🚀🎉🎉 in 3½ weeks 💪🏾
Menu: 🍕 €9.50 · 🍜 ¥1,200 · 🥗 £7 · ☕ $3 — “très bon” 👍🏼👍🏿, naïve café crème 😋
Score: ♠️♥️♦️♣️ ½ ⅓ ∑∞ ≠ ≈ → ✓ ✗ ★★★☆☆ 😀😃😄😁😆😅🤣😂🙂🙃😉😊
""",
}
ORDER = ["english", "code", "chinese", "arabic", "emoji"]


def text_of(kind):
    """A text that starts with what `kind` says and goes on with the others, about 2,000 tokens or more."""
    start = 0 if kind == "mixed" else ORDER.index(kind)
    return "\n".join(TEXTS[k] for k in ORDER[start:] + ORDER[:start])


def prompts(folder):
    """[{ids, kind, exact}] in the order of QUESTIONS, then LENGTHS."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    out = []
    for kind, question in QUESTIONS:
        ids = tokenizer(question).input_ids
        if "<|im_start|>" in tokenizer.get_vocab():
            turn = [{"role": "user", "content": question}]
            text = tokenizer.apply_chat_template(turn, add_generation_prompt=True, tokenize=False)
            ids = tokenizer(text, add_special_tokens=False).input_ids
        out.append({"ids": ids, "kind": kind + " question", "exact": False})
    for kind, tokens, exact in LENGTHS:
        ids = tokenizer(text_of(kind)).input_ids[:tokens]
        if len(ids) != tokens:
            raise SystemExit("the text of %s has %d tokens, %d are wanted" % (kind, len(ids), tokens))
        out.append({"ids": ids, "kind": kind, "exact": exact})
    return out
