// From a JSON value to a Swift value: unknown members are refused, and an error names the
// path of the wrong value.

/// A JSON value that does not have the expected shape.
package struct JSONShapeError: Error, Sendable, Hashable {
    /// The JSON pointer (RFC 6901) of the value.
    package let pointer: String
    /// The problem.
    package let message: String
}

/// Decodes `Decodable` values strictly. Members are in snake_case for properties in camelCase.
package enum StrictDecoder {
    /// Throws `JSONShapeError` for a member that is unknown, missing, or of another kind; the
    /// error gives its JSON pointer.
    package static func decode<T: Decodable>(_ type: T.Type, from value: JSONValue) throws -> T {
        let usage = Usage()
        let result: T
        do {
            result = try ValueDecoder(value: value, path: [], usage: usage).unbox(type)
        } catch let error as DecodingError {
            throw shapeError(error)
        }
        try usage.check(value, path: "")
        return result
    }

    private static func shapeError(_ error: DecodingError) -> JSONShapeError {
        switch error {
        case .keyNotFound(let key, let context):
            return JSONShapeError(
                pointer: pointer(context.codingPath) + "/" + escaped(snakeCase(key.stringValue)),
                message: "it is missing")
        case .typeMismatch(_, let context), .valueNotFound(_, let context),
            .dataCorrupted(let context):
            return JSONShapeError(
                pointer: pointer(context.codingPath), message: context.debugDescription)
        @unknown default: return JSONShapeError(pointer: "", message: "it cannot be taken")
        }
    }

    fileprivate static func pointer(_ path: [any CodingKey]) -> String {
        path.map { "/" + ($0.intValue.map(String.init) ?? escaped($0.stringValue)) }.joined()
    }

    /// A name as a step of a pointer: control characters replaced, cut after 64 scalars.
    package static func escaped(_ name: String) -> String {
        let octets = name.withoutControls(limit: 64).utf8.flatMap { octet -> [UInt8] in
            switch octet {
            case UInt8(ascii: "~"): Array("~0".utf8)
            case UInt8(ascii: "/"): Array("~1".utf8)
            default: [octet]
            }
        }
        return String(decoding: octets, as: UTF8.self)
    }

    /// `clientID` and `clientId` as `client_id`.
    static func snakeCase(_ name: String) -> String {
        var out = ""
        var previousWasUpper = true
        for character in name {
            if character.isUppercase {
                if !previousWasUpper { out += "_" }
                out += character.lowercased()
                previousWasUpper = true
            } else {
                out.append(character)
                previousWasUpper = character == "_"
            }
        }
        return out
    }
}

/// The members that the decoded type read, by the pointer of their object.
private final class Usage {
    /// Nil for a value that was decoded as a whole.
    private var names: [WireText: Set<WireText>] = [:]

    func opened(_ pointer: String) {
        let pointer = WireText(pointer)
        if names[pointer] == nil { names[pointer] = [] }
    }
    func asked(_ name: String, at pointer: String) {
        names[WireText(pointer), default: []].insert(WireText(name))
    }

    /// Throws for the first member, in order of names, that the decoded type did not read.
    func check(_ value: JSONValue, path: String) throws {
        switch value {
        case .object(let object):
            guard let known = names[WireText(path)] else { return }
            for (name, member) in object.members.map({ (WireText($0.name), $0.value) }).sorted(by: {
                $0.0 < $1.0
            }) {
                let pointer = path + "/" + StrictDecoder.escaped(name.text)
                guard known.contains(name) else {
                    throw JSONShapeError(pointer: pointer, message: "there is no such member")
                }
                try check(member, path: pointer)
            }
        case .array(let items):
            for (index, item) in items.enumerated() { try check(item, path: path + "/\(index)") }
        default: return
        }
    }
}

private struct ValueDecoder: Decoder {
    let value: JSONValue
    let path: [any CodingKey]
    let usage: Usage
    var codingPath: [any CodingKey] { path }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func mismatch(_ wanted: String) -> DecodingError {
        mismatch(saying: "must be \(wanted), not \(value.kind)")
    }

    private func mismatch(saying text: String) -> DecodingError {
        .typeMismatch(
            JSONValue.self, DecodingError.Context(codingPath: path, debugDescription: text))
    }

    func unbox<T: Decodable>(_ type: T.Type) throws -> T {
        // Types that decode themselves get the whole value.
        if type == JSONValue.self, let value = value as? T { return value }
        return try T(from: self)
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard case .object(let object) = value else { throw mismatch("an object") }
        let pointer = StrictDecoder.pointer(path)
        usage.opened(pointer)
        return KeyedDecodingContainer(Keyed<Key>(object: object, decoder: self, pointer: pointer))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard case .array(let items) = value else { throw mismatch("an array") }
        return Unkeyed(items: items, decoder: self)
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer { Single(decoder: self) }

    func string() throws -> String {
        guard case .string(let text) = value else { throw mismatch("a string") }
        return text
    }

    func bool() throws -> Bool {
        guard case .bool(let flag) = value else { throw mismatch("true or false") }
        return flag
    }

    func integer<T: FixedWidthInteger>(_ type: T.Type) throws -> T {
        guard case .number(let number) = value else { throw mismatch("a whole number") }
        guard let integer = number.integer, let result = T(exactly: integer) else {
            throw mismatch(saying: "must be a whole number from \(T.min) to \(T.max)")
        }
        return result
    }

    func double() throws -> Double {
        guard case .number(let number) = value, number.double.isFinite else {
            throw mismatch("a number")
        }
        return number.double
    }
}

/// A step of a path. Its text is kept unchanged.
private struct Step: CodingKey {
    let intValue: Int?
    let stringValue: String
    init(_ index: Int) { (intValue, stringValue) = (index, "\(index)") }
    init(_ name: String) { (intValue, stringValue) = (nil, name) }
    init?(intValue: Int) { self.init(intValue) }
    init?(stringValue: String) { self.init(stringValue) }
}

private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let object: JSONObject
    let decoder: ValueDecoder
    let pointer: String
    var codingPath: [any CodingKey] { decoder.path }
    var allKeys: [Key] {
        object.members.map { WireText($0.name) }.sorted().compactMap { Key(stringValue: $0.text) }
    }

    /// The member. Records that the type read it.
    private func member(_ key: Key) -> (name: String, value: JSONValue)? {
        // The keys of dictionaries match unchanged; property names are in
        // camelCase and match in snake_case.
        for name in [key.stringValue, StrictDecoder.snakeCase(key.stringValue)] {
            if let value = object[name] {
                decoder.usage.asked(name, at: pointer)
                return (name, value)
            }
        }
        return nil
    }

    private func nested(_ key: Key) throws -> ValueDecoder {
        guard let (name, value) = member(key) else {
            throw DecodingError.keyNotFound(
                key, DecodingError.Context(codingPath: decoder.path, debugDescription: "missing"))
        }
        return ValueDecoder(value: value, path: decoder.path + [Step(name)], usage: decoder.usage)
    }

    func contains(_ key: Key) -> Bool { member(key) != nil }
    func decodeNil(forKey key: Key) throws -> Bool { member(key)?.value == .null }
    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try nested(key).bool() }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try nested(key).string() }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try nested(key).double() }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float {
        Float(try nested(key).double())
    }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try nested(key).integer(type) }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try nested(key).integer(type) }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 {
        try nested(key).integer(type)
    }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 {
        try nested(key).integer(type)
    }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 {
        try nested(key).integer(type)
    }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try nested(key).integer(type) }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 {
        try nested(key).integer(type)
    }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 {
        try nested(key).integer(type)
    }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 {
        try nested(key).integer(type)
    }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 {
        try nested(key).integer(type)
    }
    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try nested(key).unbox(type)
    }
    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        try nested(key).container(keyedBy: type)
    }
    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try nested(key).unkeyedContainer()
    }
    func superDecoder() throws -> any Decoder { decoder }
    func superDecoder(forKey key: Key) throws -> any Decoder { try nested(key) }
}

private struct Unkeyed: UnkeyedDecodingContainer {
    let items: [JSONValue]
    let decoder: ValueDecoder
    var currentIndex = 0
    var codingPath: [any CodingKey] { decoder.path }
    var count: Int? { items.count }
    var isAtEnd: Bool { currentIndex >= items.count }

    init(items: [JSONValue], decoder: ValueDecoder) {
        self.items = items
        self.decoder = decoder
    }

    private mutating func next() throws -> ValueDecoder {
        let path = decoder.path + [Step(currentIndex)]
        guard !isAtEnd else {
            throw DecodingError.valueNotFound(
                JSONValue.self,
                DecodingError.Context(codingPath: path, debugDescription: "an item is missing"))
        }
        defer { currentIndex += 1 }
        return ValueDecoder(value: items[currentIndex], path: path, usage: decoder.usage)
    }

    mutating func decodeNil() throws -> Bool {
        guard !isAtEnd, items[currentIndex] == .null else { return false }
        currentIndex += 1
        return true
    }
    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T { try next().unbox(type) }
    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> {
        try next().container(keyedBy: type)
    }
    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try next().unkeyedContainer()
    }
    mutating func superDecoder() throws -> any Decoder { try next() }
}

private struct Single: SingleValueDecodingContainer {
    let decoder: ValueDecoder
    var codingPath: [any CodingKey] { decoder.path }

    func decodeNil() -> Bool { decoder.value == .null }
    func decode(_ type: Bool.Type) throws -> Bool { try decoder.bool() }
    func decode(_ type: String.Type) throws -> String { try decoder.string() }
    func decode(_ type: Double.Type) throws -> Double { try decoder.double() }
    func decode(_ type: Float.Type) throws -> Float { Float(try decoder.double()) }
    func decode(_ type: Int.Type) throws -> Int { try decoder.integer(type) }
    func decode(_ type: Int8.Type) throws -> Int8 { try decoder.integer(type) }
    func decode(_ type: Int16.Type) throws -> Int16 { try decoder.integer(type) }
    func decode(_ type: Int32.Type) throws -> Int32 { try decoder.integer(type) }
    func decode(_ type: Int64.Type) throws -> Int64 { try decoder.integer(type) }
    func decode(_ type: UInt.Type) throws -> UInt { try decoder.integer(type) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try decoder.integer(type) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try decoder.integer(type) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try decoder.integer(type) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try decoder.integer(type) }
    func decode<T: Decodable>(_ type: T.Type) throws -> T { try decoder.unbox(type) }
}

extension JSONValue: Decodable {
    /// Works only with this decoder, which passes the value itself.
    package init(from decoder: any Decoder) throws {
        guard let decoder = decoder as? ValueDecoder else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: decoder.codingPath,
                    debugDescription: "JSONValue is read by StrictDecoder"))
        }
        self = decoder.value
    }
}
