// The public CEL conformance cases (conformance/cel_cases.json): every one that needs
// no regular expression.

import CEL
import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct ConformanceTests {
    @Test(.enabled(if: Folders.hasConformance, Folders.skipped))
    func evaluation_publicCases_givesTheirResults() throws {
        let data = try Data(contentsOf: Folders.conformance.appending(path: "cel_cases.json"))
        let cases = try #require(try JSONSerialization.jsonObject(with: data) as? [[String: Any]])
        try #require(!cases.isEmpty)
        var passed = 0
        var tried = 0
        for json in cases {
            let name = "\(json["file"] ?? "")/\(json["section"] ?? "")/\(json["name"] ?? "")"
            if (json["features"] as? [String] ?? []).contains("regex") {
                // Outside the language: refused before evaluation, with a clear error.
                let refused = try #require(ExpressionCase(json: json)).evaluate(zones: .system)
                guard case .failure(.fault(let fault)) = refused,
                    fault.message.contains("regular expressions")
                else {
                    Issue.record("\(name): matches() is not refused")
                    continue
                }
                continue
            }
            tried += 1
            let result = try #require(ExpressionCase(json: json), "\(name)").evaluate(
                zones: .system)
            switch (result, json["value"]) {
            case (.success(let value), .some(let expected)):
                let wanted = try #require(CELValue(typedJSON: expected), "\(name)")
                let matches = "\(try canonical(value))" == "\(try canonical(wanted))"
                #expect(matches, "\(name): \(json["expr"] ?? "") gave \(value), wanted \(wanted)")
                passed += matches ? 1 : 0
            case (.failure, .none): passed += 1
            case (.success(let value), .none):
                Issue.record("\(name): \(json["expr"] ?? "") gave \(value), wanted an error")
            case (.failure(let failure), .some):
                Issue.record("\(name): \(json["expr"] ?? "") failed: \(failure.message)")
            }
        }
        print("cel: \(passed) of \(tried) cases")
        #expect(passed == tried && tried >= 836)
    }

    /// Text that is equal exactly when the values are, with maps in one order.
    private func canonical(_ value: CELValue) throws -> String {
        if case .map(let map) = value {
            return "{"
                + (try map.entries.map { try canonical($0.key) + ":" + canonical($0.value) })
                .sorted().joined(separator: ",")
                + "}"
        }
        if case .list(let list) = value {
            return "[" + (try list.map(canonical)).joined(separator: ",") + "]"
        }
        let json = try JSONSerialization.data(
            withJSONObject: try #require(value.typedJSON), options: .sortedKeys)
        return String(decoding: json, as: UTF8.self)
    }
}
