// Milter
