package decisions

import (
	"reflect"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/record"
)

// fill sets every field that can be set to something.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.String:
		v.SetString(string(rune('a' + *n)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float32:
		v.SetFloat(float64(*n) / 2)
	}
}

// Every field of a record is kept, so that one that is added to it is not forgotten here.
func TestEveryFieldIsKept(t *testing.T) {
	r := new(Ring)
	r.Resize(1 << 20)
	in := asked("an id")
	n := 0
	fill(reflect.ValueOf(&in.Seen.Record).Elem(), &n)
	in.Seen.Attempts = []record.Attempt{{Worker: "w1", Reason: "refused", After: time.Second}, {Worker: "w2"}}
	in.Seen.Status, in.Seen.Retries, in.Seen.Stream, in.Seen.End = 502, 2, true, "broken"
	want := in.Seen.Record
	want.ID = in.ID
	r.Ended(in, 3*time.Second, 77)
	d, ok := r.Find("an id")
	if !ok || !reflect.DeepEqual(d.Record, want) {
		t.Errorf("%+v\nwant\n%+v", d.Record, want)
	}
	d.Record, d.At = record.Record{}, time.Time{}
	if want := (Decision{Number: 1, Client: "10.0.0.1", Key: "team", Method: "POST", Path: "/v1/completions", Status: 502,
		Stream: true, Retries: 2, End: "broken", Bytes: 77, Seconds: 3}); !reflect.DeepEqual(d, want) {
		t.Errorf("%+v\nwant\n%+v", d, want)
	}
}

// Records of all lengths go round the circle, and each that is kept is whole.
func TestTheCircle(t *testing.T) {
	r := new(Ring)
	for i := range 3000 {
		if i%700 == 0 {
			r.Resize([]int{3000, 9000, 2500, 7001, 2300}[i/700])
		}
		in := asked("id")
		in.Seen.Worker = string(make([]byte, i*7%400))
		in.Seen.Retries = int32(i)
		r.Ended(in, time.Second, int64(i*7%400))
		list := r.Latest(Query{Limit: 1000})
		if s := r.Stats(); s.Bytes > int(r.most.Load()) || s.Kept != len(list) || s.Kept < min(2, i+1) {
			t.Fatalf("%d: %+v, %d listed", i, s, len(list))
		}
		for k, d := range list {
			if d.Retries != i-k || len(d.Worker) != int(d.Bytes) || d.Bytes != int64((i-k)*7%400) {
				t.Fatalf("after %d the %dth is %d, %d bytes of worker, %d sent", i, k, d.Retries, len(d.Worker), d.Bytes)
			}
		}
	}
}
