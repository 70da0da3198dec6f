// Grows with its first test.
