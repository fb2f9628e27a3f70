"""Places of regions on the map."""

import itertools

import pytest

from clustergym.envs.rendering.pictures.region_map import place_regions

INNER = (10, 20, 650, 340)  # 640 x 320


def test_four_regions_leave_room_for_arrows_alone():
    """Two by two with 48 pixels between: (640 - 48) / 2 = 296 wide and (320 - 48) / 2 = 136 high."""
    assert place_regions(4, INNER, 12, 200) == [
        (10, 20, 306, 156),
        (354, 20, 650, 156),
        (354, 204, 650, 340),
        (10, 204, 306, 340),
    ]


def test_six_regions_stand_side_by_side():
    """(640 - 2 x 12) / 3 = 205 wide; 48 pixels between the rows."""
    boxes = place_regions(6, INNER, 12, 200)
    assert {(right - left, bottom - top) for left, top, right, bottom in boxes} == {(205, 136)}
    assert {top for _, top, *_ in boxes} == {20, 204}


@pytest.mark.parametrize("count", range(1, 20))
def test_regions_are_inside_and_apart(count):
    boxes = place_regions(count, INNER, 12, 200)
    assert len(boxes) == count
    for left, top, right, bottom in boxes:
        assert (10 <= left < right <= 650) and (20 <= top < bottom <= 340)
    for one, other in itertools.combinations(boxes, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
