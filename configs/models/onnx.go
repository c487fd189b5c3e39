package models

import (
	"bufio"
)

func isONNX(start []byte) bool { return false }

func readONNX(r *bufio.Reader, o Overrides) (*Config, error) { return nil, nil }
