package sdk_test

import (
	"strings"
	"testing"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

type knobs struct {
	f float64
	i int
	s string
	b bool
}

func (k *knobs) Route(*sdk.Request, []sdk.Worker) sdk.Decision { return sdk.Decline }

func (k *knobs) Configure(o *sdk.Options) error {
	*k = knobs{o.Float("f", 1.5), o.Int("i", 2), o.String("s", "x"), o.Bool("b", true)}
	return nil
}

func TestOptions(t *testing.T) {
	f := func(values map[string]string, want knobs, wantErr string) {
		t.Helper()
		k := &knobs{}
		err := sdktest.Configure(k, values)
		if wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), wantErr) {
				t.Errorf("%v: error %v; want %q", values, err, wantErr)
			}
			return
		}
		if err != nil || *k != want {
			t.Errorf("%v: %+v, %v; want %+v", values, *k, err, want)
		}
	}
	f(nil, knobs{1.5, 2, "x", true}, "")
	f(map[string]string{"f": "-2e3", "i": "-7", "s": "", "b": "false"}, knobs{-2000, -7, "", false}, "")
	f(map[string]string{"f": "inf"}, knobs{}, `option "f" is "inf"; want a number`)
	f(map[string]string{"i": "1.5"}, knobs{}, `option "i" is "1.5"; want a whole number`)
	f(map[string]string{"b": "yes"}, knobs{}, `want true or false`)
	f(map[string]string{"z": "", "g": ""}, knobs{}, `unknown option "g"; the strategy knows f i s b`)
	err := sdk.Configure(none{}, []byte{1, 0, 0, 0, 'a', 0, 0, 0, 0})
	if err == nil || !strings.Contains(err.Error(), "no options; remove it") {
		t.Errorf("a strategy without options: %v", err)
	}
}

type none struct{}

func (none) Route(*sdk.Request, []sdk.Worker) sdk.Decision { return sdk.Decline }
