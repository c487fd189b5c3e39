// Command command runs package standin as a program.
package main

import "carma/runner/mps/standin"

func main() { standin.Main() }
