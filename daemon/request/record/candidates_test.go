package record

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestCandidatesAsJSON: a field that Candidate gets must be written here too.
func TestCandidatesAsJSON(t *testing.T) {
	full := Candidate{Worker: "w\"1", State: "up"}
	v := reflect.ValueOf(&full).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		switch f.Kind() {
		case reflect.String:
			f.SetString(v.Type().Field(i).Name + "\"")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Uint32:
			f.SetUint(uint64(i + 1))
		case reflect.Float32, reflect.Float64:
			f.SetFloat(float64(i) + .5)
		default:
			t.Fatalf("%s is a %s", v.Type().Field(i).Name, f.Kind())
		}
	}
	for _, all := range [][]Candidate{nil, {{}}, {full, {Worker: "w2", State: "down"}}} {
		r := Record{Candidates: all}
		l := r.CandidatesJSON()
		want, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		zero := regexp.MustCompile(`"\w+":0,?`)
		want = []byte(strings.ReplaceAll(zero.ReplaceAllString(string(want), ""), ",}", "}"))
		if all == nil {
			want = []byte("[]")
		}
		if string(l) != string(want) {
			t.Errorf("%s; want %s", l, want)
		}
		var read []Candidate
		if err := json.Unmarshal(l, &read); err != nil || !reflect.DeepEqual(read, append([]Candidate{}, all...)) {
			t.Errorf("%+v is read, %v; want %+v", read, err, all)
		}
	}
}
