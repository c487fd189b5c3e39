package root

import (
	"encoding/json"
	"net/http"
	"time"

	"carma/runner/api"
)

// setNotify simulates a daemon that accepts the channels of its user. A channel called fails
// has failed.
func (d *fakeDaemon) setNotify(w http.ResponseWriter, r *http.Request) {
	var s api.NotifySettings
	_ = json.NewDecoder(r.Body).Decode(&s)
	v := api.Notify{Events: api.NotifyDefaults, Channels: []api.NotifyState{}}
	for _, c := range s.Channels {
		state := api.NotifyState{Name: c.Name, Kind: c.Kind, To: c.Target(), Events: c.Events}
		if state.Events == nil {
			state.Events = api.NotifyDefaults
		}
		if c.Name == "fails" {
			state.Failed, state.Error, state.Waiting = time.Now().Add(-2*time.Hour), "it answered 503 Service Unavailable", 4
		}
		v.Channels = append(v.Channels, state)
	}
	d.update(func() { d.notify = v })
	d.answer(w, &v)
}

func (d *fakeDaemon) testNotify(w http.ResponseWriter, r *http.Request) {
	var ask api.NotifyTest
	_ = json.NewDecoder(r.Body).Decode(&ask)
	out := []api.NotifyTested{}
	for _, c := range d.notify.Channels {
		if ask.Channel != "" && ask.Channel != c.Name {
			continue
		}
		t := api.NotifyTested{Channel: c.Name, Kind: c.Kind, OK: c.Error == "", Text: c.Error}
		if t.OK {
			t.Text = "it answered 200 OK"
		}
		out = append(out, t)
	}
	if len(out) == 0 {
		problem(w, http.StatusUnprocessableEntity, "there are no channels for messages; carma notify says how to set some")
		return
	}
	d.answer(w, &out)
}
