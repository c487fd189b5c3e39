// Package learn passes on what runs have shown: to the predictor, and to the tasks that
// wait or run.
//
// A [Learner] owns nothing; what is learned is in the predictor. It records the end of
// runs ([Learner.LearnRun], [Learner.LearnFloor]), the activity in samples
// ([Learner.LearnLoads]) and the rates in output ([Learner.ThroughputReported]). It answers
// with which grant a task is launched first ([Learner.SetFirstGrant]).
//
// It reads the ledger and the predictor. It changes waiting tasks of the same kind, drops
// their cached scores, and keeps the order of the queue. If a task turns out to slow down
// its neighbours, the preempter evicts it. Memory is in bytes, activity in fractions of a
// GPU.
package learn
