package api

import (
	"reflect"
	"testing"
	"time"
)

// TestRequest checks how the input of a route becomes a path, a query and a body: text is
// escaped, zero values are left out, and a time keeps its nanoseconds and its zone.
func TestRequest(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	check := func(path string, body any, want string, wantBody any) {
		t.Helper()
		if path != want || !reflect.DeepEqual(body, wantBody) {
			t.Errorf("%s with %v, want %s with %v", path, body, want, wantBody)
		}
	}
	path, body := GetTask.request(TaskPath{"a/b c?"})
	check(path, body, "/v1/tasks/a%2Fb%20c%3F", nil)
	path, body = HoldTask.request(onTask("7", Note{Why: "x"}))
	check(path, body, "/v1/tasks/7/hold", Note{Why: "x"})
	path, body = ListTasks.request(ListOptions{All: true, Label: "a=b&c", Since: at, After: 3})
	check(path, body, "/v1/tasks?all=true&label=a%3Db%26c&since=2026-01-02T03%3A04%3A05.000000006%2B01%3A00", nil)
	path, body = ListTasks.request(ListOptions{})
	check(path, body, "/v1/tasks", nil)
	path, body = GetQuotas.request(QuotaOptions{[]string{"ann", "@lab"}})
	check(path, body, "/v1/quotas?name=ann&name=%40lab", nil)
	path, body = ReadLogs.request(LogsOfTask{TaskPath{"7"}, LogOptions{Follow: true, Tail: 5}})
	check(path, body, "/v1/tasks/7/logs?follow=true&tail=5", nil)
	path, body = ReadHelperLogs.request(LogsOfHelper{SuitePath{"s"}, "s-db-1", false, 0})
	check(path, body, "/v1/suites/s/helpers/s-db-1/logs", nil)
	path, body = PutSuite.request(SuitePut{SuitePath: SuitePath{"s"}, Check: true, Body: Suite{}})
	check(path, body, "/v1/suites/s?check=true", Suite{})
	path, body = Unreserve.request(ReservationPath{3})
	check(path, body, "/v1/reservations/3", nil)
}
