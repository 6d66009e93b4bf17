// The expression language beyond the public cases: positions of faults, limits,
// time, text of values.

import CEL
import TestSupport
import Testing

@Suite(.blocking) struct ExpressionTests {
    private func evaluate(
        _ text: String, _ bindings: [String: CELValue] = [:]
    ) -> Result<CELValue, ExpressionCaseFailure> {
        ExpressionCase(expression: text, bindings: bindings).evaluate(zones: .system)
    }

    private func text(_ expression: String) -> String {
        switch evaluate(expression) {
        case .success(let value): value.text
        case .failure(let failure): "error: \(failure.message)"
        }
    }

    @Test(arguments: [
        ("1 +", 3), ("a.b.c", 0), ("(1", 2), ("1 ? 2 : 3", 2), ("[1, 2", 5), ("size(1)", 0),
        ("true && 1 + 'a'", 10),
        ("'é' + 1", 5),
        ("1 // comment\n + $", 16), ("has(1)", 4), ("{1.0: 2}", 1),
    ])
    func expression_faulty_namesItsPosition(expression: String, offset: Int) {
        guard case .failure(.fault(let fault)) = evaluate(expression) else {
            Issue.record("\(expression) has no fault")
            return
        }
        #expect(fault.span.lowerBound == offset, "\(expression): \(fault.message)")
    }

    @Test(arguments: [
        ("duration('1h30m5.5s')", "duration(\"5405.5s\")"),
        ("duration('-1.5h')", "duration(\"-5400s\")"),
        ("duration('1')", "error: not a duration"), ("duration('')", "error: not a duration"),
        ("string(duration('1ns'))", "\"0.000000001s\""),
        ("timestamp('2024-02-29T23:59:59.5+01:00')", "timestamp(\"2024-02-29T22:59:59.5Z\")"),
        ("timestamp('2023-02-29T00:00:00Z')", "error: not a timestamp"),
        ("timestamp('2024-01-01 00:00:00Z')", "error: not a timestamp"),
        ("timestamp('2024-12-31T00:00:00Z').getDayOfYear()", "365"),
        ("timestamp('1900-03-01T00:00:00Z').getDayOfYear()", "59"),
        ("timestamp('0001-01-01T00:00:00Z').getDayOfWeek()", "1"),
        ("timestamp('1969-12-31T23:59:59.9Z').getSeconds()", "59"),
        ("int(timestamp('1969-12-31T23:59:59.9Z'))", "-1"),
        ("timestamp('2026-07-01T12:00:00Z').getHours('Europe/Berlin')", "14"),
        (
            "timestamp('2026-07-01T12:00:00Z').getHours('Nowhere/At All')",
            "error: unknown time zone"
        ),
        ("timestamp('2026-07-01T12:00:00Z').getHours('25:00')", "error: unknown time zone"),
        ("duration('-3730.25s').getMilliseconds()", "-250"),
        // The public cases sub_time_duration_over and _under: a
        // duration has 64 bits of nanoseconds.
        (
            "timestamp('9999-12-31T23:59:59Z') - timestamp('0001-01-01T00:00:00Z')",
            "error: duration out of range"
        ),
        (
            "timestamp('0001-01-01T00:00:00Z') - timestamp('9999-12-31T23:59:59Z')",
            "error: duration out of range"
        ),
        (
            "timestamp('2262-04-11T23:47:16.854775807Z') - timestamp(0)",
            "duration(\"9223372036.854775807s\")"
        ),
        (
            "timestamp('2262-04-11T23:47:16.854775808Z') - timestamp(0)",
            "error: duration out of range"
        ),
    ])
    func timeExpression_validOrNot_givesValueOrError(expression: String, expected: String) {
        #expect(text(expression) == expected)
    }

    @Test(arguments: [
        ("string(1e6)", "\"1000000\""), ("string(1.0)", "\"1\""), ("string(0.00001)", "\"1e-05\""),
        ("2.0", "2.0"),
        ("-0.0", "-0.0"),
        ("b'a\\xff'", "b\"\\x61\\xff\""), ("{'a': [1, [2]]}", "{\"a\": […]}"),
        ("'\\n\"'", "\"\\n\\\"\""), ("int('+5')", "5"),
        ("int(' 5')", "error: not an int"), ("double('1.5\\000zzz')", "error: not a double"),
        ("uint(-0.5)", "error: out of the range of uint"),
        ("-9223372036854775808 % -1", "error: int overflow"), ("5 % -3", "2"),
        ("'e\\u0301' == '\\u00e9'", "false"), ("'e\\u0301' in {'\\u00e9': 1}", "false"),
        ("size('e\\u0301')", "2"),
        ("'e\\u0301'.contains('e')", "true"),
        ("[1,2,].size()", "2"), ("{'a': 1,}.a", "1"), ("r'\\'", "\"\\\\\""),
        ("'''a'b'''", "\"a'b\""), ("1.5e3", "1500.0"),
        (".5", "0.5"),
        ("[3, 1].exists_one(x, x > 2)", "true"), ("[1, 2].map(x, x > 1, x * 10)", "[20]"),
        ("1 in [1.0, 'a']", "true"),
        ("1 in [1.0]", "error: 'in' is not defined for int and list(double)"),
        ("x", "error: unknown name 'x'"), ("0x7fffffffffffffff", "9223372036854775807"),
        ("0xffffffffffffffffu", "18446744073709551615u"),
        ("0x8000000000000000", "error: the number does not fit in an int (64 bits)"),
    ])
    func expression_ofEachKind_givesValueOrError(expression: String, expected: String) {
        #expect(text(expression) == expected)
    }

    @Test(arguments: ["rb'x'", "Rb'x'", "rr'x'", "bb'x'"]) func stringPrefix_unknown_isRefused(
        _ expression: String
    ) {
        #expect(text("br'x\\'") == #"b"\x78\x5c""#)
        #expect(text(expression).hasPrefix("error: "), "\(text(expression))")
    }

    @Test func expression_tooDeepOrLarge_isRefused() {
        for deep in [
            String(repeating: "(", count: 5_000), String(repeating: "!", count: 5_000) + "true",
            String(repeating: "-", count: 5_000) + "1",
            String(repeating: "[", count: 5_000), String(repeating: "{1:", count: 4_000),
            String(repeating: "1+", count: 3_000) + "1",
            String(repeating: "true?", count: 3_000), "a" + String(repeating: ".b", count: 5_000),
            "a" + String(repeating: "[0]", count: 4_000),
            String(repeating: "size(", count: 3_000),
            String(repeating: "1 ? 2 : ", count: 2_000) + "3",
            "[" + String(repeating: "1,", count: 5_000) + "]",
        ] {
            guard case .failure(.fault) = evaluate(deep) else {
                Issue.record("taken: \(deep.prefix(20))…")
                continue
            }
        }
        // Forms that the definition requires implementations to accept.
        #expect(
            text(String(repeating: "(", count: 32) + "7" + String(repeating: ")", count: 32)) == "7"
        )
        #expect(text(String(repeating: "1 + ", count: 48) + "1") == "49")
    }
}
