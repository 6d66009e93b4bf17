// Values as typed JSON, the form of the public conformance cases: {"int":"5"}, {"map":[[k,v]]},
// bytes in base64. Also one case of `postern policy eval --batch`.

import Foundation

extension CELValue {
    /// Most values in one JSON answer. Structure that is shared in memory is repeated in JSON, and
    /// could become huge.
    package static let maximumJSONNodes = 100_000

    /// Parses a typed value (as JSONSerialization returns it); nil if it is malformed or over 100
    /// levels deep.
    package init?(typedJSON json: Any, depth: Int = 0) {
        guard depth < ExpressionLimits.maximumNesting, let object = json as? [String: Any],
            object.count == 1,
            let (kind, content) = object.first
        else { return nil }
        let text = content as? String ?? (content as? NSNumber).map { $0.stringValue }
        func value<Number>(_ number: Number?, _ make: (Number) -> CELValue) -> CELValue? {
            number.map(make)
        }
        let result: CELValue?
        switch kind {
        case "null": result = .null
        case "bool": result = (content as? Bool).map(CELValue.bool)
        case "int": result = text.flatMap { Int64($0) }.map(CELValue.int)
        case "uint": result = text.flatMap { UInt64($0) }.map(CELValue.uint)
        case "double": result = text.flatMap { Double($0) }.map(CELValue.double)
        case "string": result = (content as? String).map(CELValue.string)
        case "bytes":
            result = (content as? String).flatMap { Data(base64Encoded: $0) }.map {
                .bytes(Array($0))
            }
        case "type": result = (content as? String).map(CELValue.type)
        case "timestamp":
            result = text.flatMap { text in
                CELTimestamp(text: text) ?? Int64(text).flatMap { CELTimestamp(seconds: $0) }
            }.map(CELValue.timestamp)
        case "duration": result = text.flatMap { CELDuration(text: $0) }.map(CELValue.duration)
        case "net.IP": result = text.flatMap { CELAddress($0) }.map(CELValue.ip)
        case "net.CIDR": result = text.flatMap { CELNetwork($0) }.map(CELValue.cidr)
        case "list":
            guard let elements = content as? [Any] else { return nil }
            let values = elements.compactMap { CELValue(typedJSON: $0, depth: depth + 1) }
            result = values.count == elements.count ? .list(values) : nil
        case "map":
            guard let entries = content as? [[Any]] else { return nil }
            var map = CELMap()
            for entry in entries {
                guard entry.count == 2, let key = CELValue(typedJSON: entry[0], depth: depth + 1),
                    let value = CELValue(typedJSON: entry[1], depth: depth + 1), map.add(key, value)
                else { return nil }
            }
            result = .map(map)
        default: result = nil
        }
        guard let result else { return nil }
        self = result
    }

    /// The value in typed form, for JSONSerialization; nil if it has more than `maximumJSONNodes`
    /// parts.
    package var typedJSON: [String: Any]? {
        var left = Self.maximumJSONNodes
        return typedJSON(&left)
    }

    private func typedJSON(_ left: inout Int) -> [String: Any]? {
        left -= 1
        guard left >= 0 else { return nil }
        switch self {
        case .null: return ["null": NSNull()]
        case .bool(let bool): return ["bool": bool]
        case .int(let int): return ["int": String(int)]
        case .uint(let uint): return ["uint": String(uint)]
        case .double(let double): return ["double": Self.jsonText(double)]
        case .string(let string): return ["string": string]
        case .bytes(let bytes): return ["bytes": Data(bytes).base64EncodedString()]
        case .type(let name): return ["type": name]
        case .timestamp(let time): return ["timestamp": time.text]
        case .duration(let duration): return ["duration": duration.text]
        case .ip(let address): return ["net.IP": address.description]
        case .cidr(let network): return ["net.CIDR": network.description]
        case .missing: return ["missing": NSNull()]
        case .list(let list):
            var elements: [Any] = []
            for element in list {
                guard let json = element.typedJSON(&left) else { return nil }
                elements.append(json)
            }
            return ["list": elements]
        case .map(let map):
            var entries: [[Any]] = []
            for entry in map.entries {
                guard let key = entry.key.typedJSON(&left), let value = entry.value.typedJSON(&left)
                else { return nil }
                entries.append([key, value])
            }
            return ["map": entries]
        }
    }

    private static func jsonText(_ double: Double) -> String {
        if double.isNaN { return "NaN" }
        if double.isInfinite { return double < 0 ? "-Infinity" : "Infinity" }
        return double.description
    }
}

/// One expression with its inputs, in the form of the public conformance cases.
package struct ExpressionCase {
    /// Its text.
    package let expression: String
    /// Type names by variable.
    package let types: [String: String]
    /// Values by variable.
    package let bindings: [String: CELValue]
    /// Whether types are checked before evaluation.
    package let isChecked: Bool

    /// Parses `expr`, `bindings`, `type_env`, `disable_check`; nil if one is malformed.
    package init?(json: [String: Any]) {
        guard let expression = json["expr"] as? String else { return nil }
        var bindings: [String: CELValue] = [:]
        for (name, value) in json["bindings"] as? [String: Any] ?? [:] {
            guard let value = CELValue(typedJSON: value) else { return nil }
            bindings[name] = value
        }
        self.expression = expression
        self.types = json["type_env"] as? [String: String] ?? [:]
        self.bindings = bindings
        self.isChecked = !(json["disable_check"] as? Bool ?? false)
    }

    /// For a single expression.
    package init(expression: String, bindings: [String: CELValue]) {
        self.expression = expression
        self.bindings = bindings
        self.types = [:]
        self.isChecked = true
    }

    /// Parses, checks and evaluates.
    package func evaluate(zones: TimeZoneOffsets) -> Result<CELValue, ExpressionCaseFailure> {
        var scope = ExpressionScope()
        var values: [CELValue?] = []
        for name in Set(types.keys).union(bindings.keys).sorted() {
            guard let type = types[name].map({ CELType(text: $0) }) ?? .dyn else {
                return .failure(.malformed("unknown type of '\(name)'"))
            }
            scope.declare(name, type)
            values.append(bindings[name])
        }
        do {
            let resolved = try Checker.resolve(expression, in: scope, isChecked: isChecked)
            var interpreter = Interpreter(variables: ExpressionVariables(values), zones: zones)
            return .success(try interpreter.evaluate(resolved))
        } catch let fault as ExpressionFault {
            return .failure(.fault(fault))
        } catch let error as EvaluationError {
            return .failure(.error(error))
        } catch {
            return .failure(.malformed("\(error)"))
        }
    }
}

/// Why a case has no value.
package enum ExpressionCaseFailure: Error {
    case malformed(String)
    case fault(ExpressionFault)
    case error(EvaluationError)

    /// The reason in one line.
    package var message: String {
        switch self {
        case .malformed(let text): text
        case .fault(let fault): fault.message
        case .error(let error): error.message
        }
    }
}
