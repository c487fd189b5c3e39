// Package predict predicts run times, activity, speeds and memory of tasks.
//
// A [Predictor] owns what was learned from earlier runs and from samples: the history of
// each kind of task, the measured corrections of pairs of kinds, the counts of observed
// classes of activity, and the errors of estimates and of declared activity. It answers
// how long a task runs ([Predictor.RunTime]), how fast the tasks on a GPU are beside each
// other ([SharingMode.Speeds]), when each of them ends ([SharingMode.Forecast]), and how
// much memory the next run of a kind is granted ([Predictor.ApplyHistory]).
//
// It reads and changes the tasks and GPUs of its ledger: the speeds of residents, the
// expected load of a task, the instants at which grants may be cut. It does not know
// queues or policies. Methods that learn return the tasks concerned, and the caller
// updates what depends on them. Times are on the scheduler's clock; activities are
// fractions of a GPU, from 0 to 1; speeds are relative to a run alone.
package predict
