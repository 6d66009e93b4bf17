// Parts of conditions that can only fail are refused with their column. Nothing else is refused.

import CEL
import Decisions
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct CertainFailureTests {
    private static let scope: ExpressionScope = {
        var scope = ExpressionScope()
        scope.declare("context.x", .int)
        scope.declare("context.s", .string)
        scope.declare("context.tags", .list(.string))
        scope.declare("now", .timestamp)
        scope.constants["ZONE"] = .string("Europe/Berln")
        scope.constants["ZERO"] = .int(0)
        scope.allowsHasOfVariable = true
        return scope
    }()

    private func failure(
        _ text: String, _ zones: TimeZoneOffsets = PolicyLoadOptions.onThisMachine.zones
    ) throws -> (column: Int, message: String)? {
        let resolved = try Checker.resolve(text, in: Self.scope)
        return resolved.certainFailure(zones: zones).map { ($0.span.lowerBound + 1, $0.message) }
    }

    @Test(
        arguments: [
            (#"now.getHours("Europe/Berln") < 6"#, 14, "unknown time zone"),
            (#"now.getHours(ZONE) < 6"#, 14, "unknown time zone"),
            (#"now.getDayOfWeek("25:00:00") < 6"#, 18, "unknown time zone"),
            (#"now - duration("30d") > now"#, 7, "not a duration"),
            (
                #"context.s in ["a"] || now > timestamp("2026-13-01T00:00:00Z")"#, 29,
                "not a timestamp"
            ),
            (
                #"cidr("198.51.100.0/33").containsIP(context.s)"#, 1,
                "not a range of IP addresses in CIDR notation"
            ),
            (#"cidr("198.51.100.0/24").containsIP("198.51.100.256")"#, 1, "not an IP address"),
            (#"ip("198.51.100") == ip(context.s)"#, 1, "not an IP address"),
            (#"1 / 0 > context.x"#, 1, "division by zero"),
            (#"context.x / 0 > 1"#, 1, "division by zero"),
            (#"context.x % ZERO == 1"#, 1, "remainder of a division by zero"),
            (#"context.x / (2 - 2) == 1"#, 1, "division by zero"),
            (#"false && 1 / 0 > 2"#, 10, "division by zero"),
            (#"true ? context.x > 1 : int("one") > 2"#, 24, "not an int"),
            (#"context.tags.exists(t, t == string(1 / 0))"#, 36, "division by zero"),
            (#"context.tags.exists(t, size(t) / 0 > 1)"#, 24, "division by zero"),
            (#"[1, 0].all(i, 10 / i > 0)"#, 1, "division by zero"),
            (#"[1, 2][2] == context.x"#, 1, "the list has no such index"),
            (#"context.tags[-1] == "a""#, 14, "the list has no such index"),
            (#"{"a": 1}["b"] == context.x"#, 1, "no such key"),
            (#"{"a": context.x, "a": 2}["a"] == 1"#, 1, "a key is repeated"),
            (#"9223372036854775807 + 1 > context.x"#, 1, "int overflow"),
            (#"uint(-1) == uint(context.x)"#, 1, "out of the range of uint"),
            (#"bool("perhaps") || context.x > 1"#, 1, "not a bool"),
        ]) func condition_partThatCanOnlyFail_isNamedWithItsColumn(
            _ text: String, _ column: Int, _ reason: String
        ) throws
    {
        let found = try #require(try failure(text), "\(text)")
        #expect(found.column == column, "\(text)")
        #expect(found.message == "this can only fail: \(reason)", "\(text)")
    }

    @Test(
        arguments: [
            #"now.getHours("Europe/Berlin") < 6"#, #"now.getHours("+02:00") < 6"#,
            #"now.getHours(context.s) < 6"#,
            #"now - duration("720h") > now"#, #"cidr("198.51.100.0/24").containsIP(context.s)"#,
            #"10 / context.x > 1"#,
            #"context.tags.all(t, [0].all(n, size(t) > n))"#,
            #"context.tags.exists(t, [1].exists(n, 10 / size(t) > n))"#,
            #"[2, 1].all(i, 10 / i > 0)"#, #"[1].all(i, [0].all(j, 10 / i > j))"#,
            #"context.tags[0] == "a""#,
            #"{"a": 1}["a"] == context.x"#, #"int(context.s) > 1"#, #"1.0 / 0.0 > 2.0"#,
            #"has(context.x) && context.x > 1"#,
        ]) func condition_partThatCanHaveAValue_isTaken(_ text: String) throws
    {
        #expect(try failure(text) == nil, "\(text)")
    }

    @Test func condition_nameOfAZoneWithoutADatabase_isTaken() throws {
        #expect(try failure(#"now.getHours("Europe/Berln") < 6"#, .none) == nil)
        #expect(
            try failure(
                #"timestamp("2026-01-01T00:00:00Z").getHours("Europe/Berln") < context.x"#, .none)
                == nil)
        #expect(try failure(#"now.getHours("+2:00") < 6"#, .none) != nil)
    }

    @Test func expression_generated_isSearchedInBoundedTime() throws {
        let many = Array(
            repeating: "[1, 2, 3, 4].all(x, [1, 2, 3, 4].all(y, [1, 2, 3].all(z, x + y + z > 0)))",
            count: 40)
        #expect(try failure(many.joined(separator: " && ")) == nil)
    }
}
