"""Short English texts with named people, organisations and places, made from the word lists below.

The words, the templates and so the texts were written for this project and have its licence (LICENSE: Apache 2.0). All
people and organisations are invented. Some names are both a person's and a place's, and not every text says which: no model
learns all of it.
"""

from __future__ import annotations

import random
import re

BOTH = "Austin|Carolina|Chelsea|Florence|Georgia|Jordan|Sofia|Victoria"
GIVEN = "Ada|Amir|Anna|Bruno|Carla|Dana|Elif|Emil|Farah|Greta|Hugo|Ines|Ivan|Jonas|Kira|Lena|Luca|Mara|Nils|Olga|" + BOTH
FAMILY = "Adler|Berg|Castell|Dorn|Eklund|Farrow|Galvez|Hollis|Imre|Jansen|Kovar|Lund|Marek|Novik|Okoro|Petrov|Rossi|Sato"
FIRM = "Amber|Birch|Cobalt|Delta|Ember|Falcon|Granite|Harbor|Indigo|Juniper|Keystone|Lantern|Meridian|Northwind|Orchard"
KIND = "Bank|Foods|Labs|Motors|Press|Rail|Software|Steel|Textiles|University"
PLACE = "Athens|Bergen|Cairo|Dublin|Fez|Ghent|Hanoi|Izmir|Kyoto|La Paz|Lima|New Delhi|Oslo|Porto|Riga|San Juan|Turin|" + BOTH
TEMPLATES = """
{person} works for {org} .
{person} lives in {place} .
{org} opened an office in {place} .
{person} left {org} in spring .
Yesterday {person} met {person} in {place} .
The board of {org} chose {person} .
Trains from {place} to {place} were late .
It rained in {place} all week .
{org} bought {org} last year .
"I like {place} , " said {person} .
Did {person} really write to {org} ?
Nobody at {org} has seen the report .
The meeting begins at nine and ends at noon .
{person} flew from {place} to {place} with a colleague from {org} .
I will never forget {given} .
I will never forget {place} .
{given} looks better in summer .
{place} looks better in summer .
""".strip().splitlines()

Text = tuple[str, list[tuple[int, int, str]]]  # a text, and begin, end and label of each entity in it


def make_name(kind: str, dice: random.Random) -> tuple[str, str]:
    """A name, and its label."""
    lists = {"person": (GIVEN, FAMILY), "given": (GIVEN,), "org": (FIRM, KIND), "place": (PLACE,)}[kind]
    return " ".join(dice.choice(words.split("|")) for words in lists), {"given": "PERSON"}.get(kind, kind.upper())


def make_text(dice: random.Random) -> Text:
    text, entities = "", []
    for place, piece in enumerate(re.split(r"{(\w+)}", dice.choice(TEMPLATES))):
        if place % 2:
            name, label = make_name(piece, dice)
            entities.append((len(text), len(text) + len(name), label))
            text += name
        else:
            text += piece
    return text, entities


def make_texts(count: int, seed: int) -> list[Text]:
    """Always the same texts for the same seed."""
    dice = random.Random(seed)
    return [make_text(dice) for _ in range(count)]
