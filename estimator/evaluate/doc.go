// Package evaluate scores estimators on files of measured trainings: real models
// (estimates.csv), generated networks (cnn.csv, mlp.csv), the timm collection with
// FakeTensor peaks (timm_faketensor.csv), and the runs that were measured for xMem
// (xmem.csv). The other formats come from the public GPUMemNet data; see
// docs/estimators.md and test/lab/estimates.md.
package evaluate
