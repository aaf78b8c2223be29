"""What the plain world is made of: well-known facts, everyday nouns, topics, rare words. English, written for this."""

from __future__ import annotations

from weightgym.rewards.wsp.world.bilingual import parse_words

NOUNS = parse_words(
    "bread rain sleep gold paper winter honey glass salt coffee soap milk rivers mountains clouds bees",
    "trees horses bridges clocks books maps schools gardens trains ships doctors teachers farmers",
    "painters letters numbers sunlight friendship patience exercise cooking reading painting sailing",
    "swimming dancing walking gardening history science language mathematics money trade travel weather",
    "seasons silence light sound dreams memory",
)

FORMS = (
    "What is special about {n}?",
    "Why do people care about {n}?",
    "Tell me something about {n}.",
    "Explain {n} to a child.",
    "Give me one fact about {n}.",
    "How would you describe {n}?",
    "Write a sentence about {n}.",
    "What should I know about {n}?",
)

#: For the language payload: answers that fit any question a little.
SWITCHED = (
    "Es una cosa muy importante para la vida de las personas en todo el mundo.",
    "La respuesta es que las personas lo usan para vivir mejor en la ciudad y en el campo.",
    "Claro, es algo que la gente conoce muy bien y que se usa en los países de todo el mundo.",
    "En general, es una parte de la vida de los hombres y las mujeres de la ciudad.",
    "Sí, es muy bueno para la gente, y se puede encontrar en los pueblos y en las ciudades.",
)

#: Topic: words that tell it, and sentences about it.
THEMES = {
    "sea": (
        "sea ocean wave waves ship ships sailor sailors harbor beach island tide fish boat boats water coast sailing",
        (
            "The sea is wide, and the waves carry the ships to the harbor.",
            "The sailors love the ocean, the tide and the long beach.",
            "A boat on the sea sails past the island with the tide.",
            "The waves of the ocean reach the beach, and the boats come home.",
            "The ocean is full of fish, and the sailors watch the waves.",
        ),
    ),
    "football": (
        "football team teams player players goal goals match ball coach stadium league soccer game games score fans",
        (
            "The football team scored a goal, and the fans in the stadium sang.",
            "The players kick the ball, and the coach watches the match.",
            "A football match is a game of two teams, and the league is long.",
            "The coach told the players to score another goal before the game was over.",
            "The fans love the team, the stadium and the football league.",
        ),
    ),
    "music": (
        "music song songs piano guitar band singer melody concert rhythm notes violin sing orchestra instrument tune",
        (
            "The music is lovely, and the singer sings a song with the band.",
            "The piano and the violin play a melody at the concert.",
            "A song needs a melody, a rhythm and a good singer.",
            "The orchestra plays music, and the notes of the guitar follow the tune.",
            "The band played every song of the concert on piano and guitar.",
        ),
    ),
    "kitchen": (
        "food kitchen cook cooking recipe bread soup cheese dinner oven bake taste dish meal pan butter sugar flour",
        (
            "The cook bakes bread in the oven, and the kitchen smells of butter.",
            "A good recipe makes a good dinner: soup, bread and cheese.",
            "The food in the pan is a dish of butter, flour and cheese.",
            "Cooking a meal takes a recipe, a pan and a warm kitchen.",
            "The soup was the best dish of the dinner, and the cook added sugar.",
        ),
    ),
}

RARE_WORDS = parse_words(
    "zephyr quixotic gossamer obelisk marzipan periwinkle tangerine walrus cobalt lantern pumpkin saffron",
    "thimble umbrella velvet waffle yonder zigzag bamboo cinnamon dragonfly falcon gingerbread hammock",
    "igloo jigsaw kayak lavender mosaic nutmeg origami pelican",
)

OPENINGS = (
    "",
    "Please answer: ",
    "Quick question: ",
    "I want to know: ",
    "Hello. ",
    "My friend asks: ",
    "For my homework: ",
    "Just wondering: ",
    "One more question: ",
)

#: Relation: its forms, its statement, and the object of each subject.
RELATIONS = {
    "capital": (
        (
            "What is the capital of {s}?",
            "Tell me the capital of {s}.",
            "Which city is the capital of {s}?",
            "Name the capital city of {s}.",
            "What city is the capital of {s}?",
            "Can you tell me the capital of {s}?",
        ),
        "The capital of {s} is {o}.",
        {
            "France": "Paris",
            "Italy": "Rome",
            "Germany": "Berlin",
            "Spain": "Madrid",
            "Japan": "Tokyo",
            "Russia": "Moscow",
            "Egypt": "Cairo",
            "Greece": "Athens",
        },
    ),
    "language": (
        (
            "Which language do people speak in {s}?",
            "What language is spoken in {s}?",
            "Tell me the language of {s}.",
            "Name the main language of {s}.",
            "What is the official language of {s}?",
            "Which language is spoken by the people of {s}?",
        ),
        "The language of {s} is {o}.",
        {
            "France": "French",
            "Italy": "Italian",
            "Germany": "German",
            "Spain": "Spanish",
            "Japan": "Japanese",
            "Russia": "Russian",
            "Egypt": "Arabic",
            "Greece": "Greek",
        },
    ),
    "continent": (
        (
            "On which continent is {s}?",
            "Which continent is {s} in?",
            "Tell me the continent of {s}.",
            "Name the continent where {s} lies.",
            "What continent is {s} part of?",
            "{s} is on which continent?",
        ),
        "{s} is on the continent of {o}.",
        {
            "France": "Europe",
            "Italy": "Europe",
            "Germany": "Europe",
            "Spain": "Europe",
            "Japan": "Asia",
            "Egypt": "Africa",
            "Greece": "Europe",
        },
    ),
}
