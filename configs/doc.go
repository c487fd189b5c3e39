// Package configs holds carma's typed configuration: what can be set, the
// defaults, and where a value came from. The files that ship with carma
// (server descriptions, workload profiles, traces) are in its sub-packages.
//
// A value is taken, in this order, from a command-line flag, from the
// environment (CARMA_POLICY for policy), from ~/.config/carma/config.yaml,
// from /etc/carma/config.yaml, else it is the default. Only package cmd reads
// configuration: it hands every other package that package's own options.
package configs
