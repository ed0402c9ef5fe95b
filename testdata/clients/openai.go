package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

// city is a JSON schema, and sample what a simulated worker makes of it.
var city = map[string]any{
	"type":       "object",
	"properties": map[string]any{"city": map[string]any{"type": "string"}, "days": map[string]any{"type": "integer"}},
	"required":   []string{"city", "days"}, "additionalProperties": false,
}

const sample = `{"city":"kalo","days":7}`

var (
	ask = []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be brief."),
		openai.UserMessage("Where do the ferries leave?")}
	use = []openai.ChatCompletionMessageParamUnion{openai.UserMessage("use the tool")}
)

func chatOf(messages []openai.ChatCompletionMessageParamUnion, tokens int64) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{Model: model, Messages: messages}
	if tokens > 0 {
		p.MaxTokens = openai.Int(tokens)
	}
	return p
}

func wantThat(ok bool, got any) error {
	if ok {
		return nil
	}
	b, _ := json.Marshal(got) // for a human
	return fmt.Errorf("got %.400s", b)
}

// goClient is the Go SDK's client against the router.
type goClient struct {
	openai.Client
	f *fleet
}

func openaiChecks(ctx context.Context, f *fleet, t *total) error {
	c := goClient{openai.NewClient(option.WithBaseURL(f.url+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0)),
		f}
	runChecks(ctx, "go openai", t, []check{
		{"models", c.models}, {"chat", c.chat}, {"chat stream with usage", c.chatStream}, {"completions", c.completions},
		{"responses", c.responses}, {"responses stream", c.responsesStream}, {"responses follow their worker", c.follow},
		{"responses tool", c.responsesTool},
		{"tool", c.tool}, {"tool stream", c.toolStream}, {"structured", c.structured},
		{"embeddings", c.embeddings}, {"audio multipart", c.audio}, {"audio speech", c.speech}, {"errors", c.errors},
		{"abort frees the slot", c.abort},
		// last: what it leaves behind when it fails would be counted by others
		{"responses background and cancel", c.background},
	})
	return nil
}

func (c goClient) models(ctx context.Context) error {
	for list := c.Models.ListAutoPaging(ctx); list.Next(); {
		if list.Current().ID == model {
			return nil
		}
	}
	return errors.New("the model is not listed")
}

func (c goClient) chat(ctx context.Context) error {
	a, err := c.Chat.Completions.New(ctx, chatOf(ask, 8))
	if err != nil {
		return err
	}
	return wantThat(len(a.Choices[0].Message.Content) == 32 && a.Usage.CompletionTokens == 8, a)
}

func (c goClient) chatStream(ctx context.Context) error {
	plain, err := c.Chat.Completions.New(ctx, chatOf(ask, 50))
	if err != nil {
		return err
	}
	p := chatOf(ask, 50)
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	sum := openai.ChatCompletionAccumulator{}
	s := c.Chat.Completions.NewStreaming(ctx, p)
	for s.Next() {
		sum.AddChunk(s.Current())
	}
	if s.Err() != nil {
		return s.Err()
	}
	return wantThat(sum.Choices[0].Message.Content == plain.Choices[0].Message.Content &&
		sum.Usage.CompletionTokens == 50, sum)
}

func (c goClient) completions(ctx context.Context) error {
	p := openai.CompletionNewParams{Model: model, MaxTokens: openai.Int(4),
		Prompt: openai.CompletionNewParamsPromptUnion{OfArrayOfStrings: []string{"one", "two"}}}
	a, err := c.Completions.New(ctx, p)
	if err != nil {
		return err
	}
	if len(a.Choices) != 2 {
		return wantThat(false, a)
	}
	text := ""
	s := c.Completions.NewStreaming(ctx, p)
	for s.Next() {
		for _, choice := range s.Current().Choices {
			if choice.Index == 1 {
				text += choice.Text
			}
		}
	}
	if s.Err() != nil {
		return s.Err()
	}
	return wantThat(text == a.Choices[1].Text && len(text) == 16, text)
}

func askResponse(text string) responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: model,
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(text)}}
}

func (c goClient) responses(ctx context.Context) error {
	p := askResponse("Hello")
	p.MaxOutputTokens = openai.Int(4)
	a, err := c.Responses.New(ctx, p)
	if err != nil {
		return err
	}
	return wantThat(len(a.OutputText()) == 16 && a.Status == "incomplete", a)
}

func (c goClient) responsesStream(ctx context.Context) error {
	text, end := "", ""
	s := c.Responses.NewStreaming(ctx, askResponse("Hello"))
	for s.Next() {
		e := s.Current()
		end = e.Type
		if end == "response.output_text.delta" {
			text += e.Delta
		}
	}
	if s.Err() != nil {
		return s.Err()
	}
	return wantThat(end == "response.completed" && text != "", end)
}

func (c goClient) follow(ctx context.Context) error {
	for i := range 8 {
		a, err := c.Responses.New(ctx, askResponse(fmt.Sprintf("Hello, number %d", i)))
		if err != nil {
			return err
		}
		p := askResponse("And more")
		p.PreviousResponseID = openai.String(a.ID)
		b, err := c.Responses.New(ctx, p)
		if err != nil {
			return err
		}
		got, err := c.Responses.Get(ctx, b.ID, responses.ResponseGetParams{})
		if err != nil {
			return err
		}
		if got.OutputText() != b.OutputText() || b.Usage.InputTokens <= a.Usage.InputTokens {
			return wantThat(false, []any{a.Usage, b.Usage, got.OutputText()})
		}
	}
	return nil
}

func (c goClient) responsesTool(ctx context.Context) error {
	p := askResponse("use the tool")
	p.Tools = []responses.ToolUnionParam{responses.ToolParamOfFunction("weather", city, true)}
	a, err := c.Responses.New(ctx, p)
	if err != nil {
		return err
	}
	return wantThat(len(a.Output) == 1 && a.Output[0].AsFunctionCall().Arguments == sample, a)
}

func (c goClient) background(ctx context.Context) error {
	p := askResponse("Take your time")
	p.Background, p.MaxOutputTokens = openai.Bool(true), openai.Int(10000)
	a, err := c.Responses.New(ctx, p)
	if err != nil {
		return err
	}
	b, err := c.Responses.Cancel(ctx, a.ID)
	if err != nil {
		return err
	}
	if b.Status != "cancelled" {
		return wantThat(false, b)
	}
	return c.f.waitRunning(0, "after a cancel")
}

func weather() []openai.ChatCompletionToolUnionParam {
	return []openai.ChatCompletionToolUnionParam{
		openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "weather", Parameters: city}),
	}
}

func (c goClient) tool(ctx context.Context) error {
	p := chatOf(use, 0)
	p.Tools = weather()
	a, err := c.Chat.Completions.New(ctx, p)
	if err != nil {
		return err
	}
	m := a.Choices[0].Message
	if len(m.ToolCalls) != 1 || m.ToolCalls[0].Function.Arguments != sample || a.Choices[0].FinishReason != "tool_calls" {
		return wantThat(false, a)
	}
	p.Messages = append(p.Messages, m.ToParam(), openai.ToolMessage("sunny", m.ToolCalls[0].ID))
	b, err := c.Chat.Completions.New(ctx, p)
	if err != nil {
		return err
	}
	return wantThat(b.Choices[0].Message.Content != "", b)
}

func (c goClient) toolStream(ctx context.Context) error {
	p := chatOf(ask, 0)
	p.Tools = weather()
	p.ToolChoice.OfAuto = openai.String("required")
	sum := openai.ChatCompletionAccumulator{}
	s := c.Chat.Completions.NewStreaming(ctx, p)
	for s.Next() {
		sum.AddChunk(s.Current())
	}
	if s.Err() != nil {
		return s.Err()
	}
	calls := sum.Choices[0].Message.ToolCalls
	return wantThat(len(calls) == 1 && calls[0].Function.Arguments == sample, sum)
}

func (c goClient) structured(ctx context.Context) error {
	p := chatOf(ask, 0)
	p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
		JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "city", Schema: city, Strict: openai.Bool(true)}}
	a, err := c.Chat.Completions.New(ctx, p)
	if err != nil {
		return err
	}
	return wantThat(a.Choices[0].Message.Content == sample, a)
}

func (c goClient) embeddings(ctx context.Context) error {
	a, err := c.Embeddings.New(ctx, openai.EmbeddingNewParams{Model: model,
		Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"one", "two"}}})
	if err != nil {
		return err
	}
	sum := 0.0
	for _, x := range a.Data[1].Embedding {
		sum += x * x
	}
	return wantThat(len(a.Data) == 2 && math.Abs(sum-1) < 1e-4, a)
}

func (c goClient) audio(ctx context.Context) error {
	file := openai.File(bytes.NewReader(make([]byte, 512<<10)), "speech.wav", "audio/wav")
	a, err := c.Audio.Transcriptions.New(ctx, openai.AudioTranscriptionNewParams{Model: model, File: file})
	if err != nil {
		return err
	}
	return wantThat(len(a.Text) == 4*129, a)
}

func (c goClient) speech(ctx context.Context) error {
	r, err := c.Audio.Speech.New(ctx, openai.AudioSpeechNewParams{Model: model, Input: "Mind the gap",
		Voice: openai.AudioSpeechNewParamsVoiceUnion{OfString: openai.String("alloy")}})
	if err != nil {
		return err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	return wantThat(len(b) == 44+3*2400, len(b))
}

func (c goClient) errors(ctx context.Context) error {
	p := chatOf(ask, 4)
	p.Model = "nobody"
	_, err := c.Chat.Completions.New(ctx, p)
	var e *openai.Error
	if !errors.As(err, &e) || e.StatusCode != 404 || e.Message == "" {
		return fmt.Errorf("an unknown model gave %v", err)
	}
	return nil
}

func (c goClient) abort(ctx context.Context) error {
	if err := c.f.waitRunning(0, "before"); err != nil {
		return err
	}
	s := c.Chat.Completions.NewStreaming(ctx, chatOf(ask, 100000))
	if !s.Next() {
		return s.Err()
	}
	if err := c.f.waitRunning(1, "in a stream"); err != nil {
		return err
	}
	s.Close()
	if err := c.f.waitRunning(0, "after an abort"); err != nil {
		return err
	}
	one, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := c.Chat.Completions.New(one, chatOf(ask, 100000))
		ended <- err
	}()
	if err := c.f.waitRunning(1, "in a plain request"); err != nil {
		return err
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the request ended with %v", err)
	}
	return c.f.waitRunning(0, "after an abort of a plain request")
}
