import unittest

from report import total


class Total(unittest.TestCase):
    def test_rows_are_summed(self):
        rows = [{"quantity": "2", "price": "1.50"}, {"quantity": "1", "price": "0.25"}]
        assert total(rows) == (3.25, [])

    def test_a_row_that_cannot_be_read_is_named_by_its_line(self):
        assert total([{"quantity": "a few", "price": "1"}]) == (0.0, [2])


if __name__ == "__main__":
    unittest.main()
