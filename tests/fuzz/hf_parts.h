// A sound folder, of which a fuzz input replaces one file: its first byte says which.
#pragma once

#include <string_view>

namespace tsq::fuzz {

inline constexpr char kWeights = 'w', kIndex = 'i', kConfig = 'c', kTokenizer = 't',
                      kTokenizerConfig = 'd';

inline constexpr std::string_view kSoundConfig =
    R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_act":"silu",)"
    R"("hidden_size":8,"intermediate_size":8,"max_position_embeddings":16,"rms_norm_eps":1e-6,)"
    R"("num_attention_heads":2,"num_key_value_heads":1,"num_hidden_layers":2,)"
    R"("tie_word_embeddings":true,"quantization_config":{"quant_method":"bitnet"},)"
    R"("rope_scaling":{"rope_type":"llama3","factor":4,"low_freq_factor":1,)"
    R"("high_freq_factor":4,"original_max_position_embeddings":8},"eos_token_id":[1,2]})";

inline constexpr std::string_view kSoundTokenizer =
    R"({"added_tokens":[{"id":4,"content":"<s>","special":true}],"normalizer":{"type":"NFC"},)"
    R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":true},)"
    R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},)"
    R"({"Sequence":{"id":"A"}}]},"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"c":3},)"
    R"("merges":["a b",["ab","c"]]}})";

}  // namespace tsq::fuzz
