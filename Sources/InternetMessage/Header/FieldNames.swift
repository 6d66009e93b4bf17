// Names of header fields, compared in place: without a string, and with ASCII letters folded (RFC
// 5322 section 1.2.2).

/// A fixed set of field names.
package struct FieldNameSet: Sendable, ExpressibleByArrayLiteral {
    /// By length, in lower case, one after the other.
    private let names: [[UInt8]]

    package init(arrayLiteral names: String...) {
        var sorted = [[UInt8]](repeating: [], count: (names.map(\.utf8.count).max() ?? 0) + 1)
        for name in names { sorted[name.utf8.count] += name.utf8.map(\.asciiLowercased) }
        self.names = sorted
    }

    /// Whether the field has one of the names.
    package func contains(_ field: HeaderField) -> Bool {
        let length = field.nameLength
        guard length > 0, length < names.count else { return false }
        return names[length].withUnsafeBufferPointer { names in
            field.bytes.withUnsafeBufferPointer { bytes in
                var start = 0
                while start < names.count {
                    var index = 0
                    while index < length, bytes[index].asciiLowercased == names[start + index] {
                        index += 1
                    }
                    if index == length { return true }
                    start += length
                }
                return false
            }
        }
    }
}

/// Finds the fields of a header section that have the same name. Building and querying take linear
/// time for any names.
package final class FieldNameIndex: Sendable {
    private struct Entry {
        /// Position of the next field above with the same name; -1 for none.
        let above: Int32
        /// Counted from 1, from the top.
        let ordinal: Int32
    }

    private struct Name {
        let hash: UInt64
        /// The lowest field of the name.
        var last: Int32
    }

    private let entries: [Entry]
    private let table: Table

    private struct Table {
        let fields: [HeaderField]
        var names: [Name] = []
        /// Numbers of names by hash, with open addressing; -1 for none. The size is a power
        /// of two; at least half is free.
        var slots: [Int32]

        init(_ fields: [HeaderField]) {
            self.fields = fields
            var size = 16
            while size < fields.count * 2 { size *= 2 }
            slots = [Int32](repeating: -1, count: size)
            names.reserveCapacity(fields.count)
        }

        func find(_ name: UnsafeBufferPointer<UInt8>) -> (name: Int?, slot: Int, hash: UInt64) {
            let hash = FieldNameIndex.hash(name)
            let mask = slots.count - 1
            var slot = Int(truncatingIfNeeded: hash >> 32) & mask
            while slots[slot] >= 0 {
                let number = Int(slots[slot])
                if names[number].hash == hash, hasName(Int(names[number].last), name) {
                    return (number, slot, hash)
                }
                slot = (slot + 1) & mask
            }
            return (nil, slot, hash)
        }

        private func hasName(_ position: Int, _ name: UnsafeBufferPointer<UInt8>) -> Bool {
            guard fields[position].nameLength == name.count else { return false }
            return fields[position].bytes.withUnsafeBufferPointer { bytes in
                for index in 0..<name.count
                where bytes[index].asciiLowercased != name[index].asciiLowercased { return false }
                return true
            }
        }
    }

    package init(_ fields: [HeaderField]) {
        var table = Table(fields)
        var entries: [Entry] = []
        entries.reserveCapacity(fields.count)
        for (position, field) in fields.enumerated() {
            let found = field.bytes.withUnsafeBufferPointer {
                table.find(UnsafeBufferPointer(rebasing: $0[..<field.nameLength]))
            }
            var last: Int32 = -1
            if let name = found.name {
                last = table.names[name].last
                table.names[name].last = Int32(truncatingIfNeeded: position)
            } else {
                table.slots[found.slot] = Int32(truncatingIfNeeded: table.names.count)
                table.names.append(
                    Name(hash: found.hash, last: Int32(truncatingIfNeeded: position)))
            }
            entries.append(
                Entry(above: last, ordinal: last < 0 ? 1 : entries[Int(last)].ordinal + 1))
        }
        self.entries = entries
        self.table = table
    }

    /// The number of different names.
    package var count: Int { table.names.count }

    /// The number of a name, 0 and up; nil if no field has it.
    package func number(of name: UnsafeBufferPointer<UInt8>) -> Int? { table.find(name).name }

    /// Position of the lowest field of a name.
    package func last(_ name: Int) -> Int { Int(table.names[name].last) }

    /// Position of the next field above that has the same name as the one at a position;
    /// nil if that is the topmost.
    package func above(_ position: Int) -> Int? {
        let above = entries[position].above
        return above < 0 ? nil : Int(above)
    }

    /// The ordinal of the field at a position among the fields of its name, counted from 1, from
    /// the top.
    package func ordinal(_ position: Int) -> Int { Int(entries[position].ordinal) }

    /// Different in each process, so that no one can choose names with the same slot.
    private static let seed = UInt64(truncatingIfNeeded: Hasher().finalize()) | 1

    /// The same for names that differ only in letter case.
    private static func hash(_ name: UnsafeBufferPointer<UInt8>) -> UInt64 {
        var hash = seed &+ UInt64(truncatingIfNeeded: name.count)
        func add(_ word: UInt64) {
            // Bit 5 distinguishes small letters from capitals. Other octets that differ only in it
            // are compared afterwards.
            let (high, low) = (hash ^ (word | 0x2020_2020_2020_2020)).multipliedFullWidth(
                by: 0x9E37_79B9_7F4A_7C15)
            hash = high ^ low
        }
        var index = 0
        while index + 8 <= name.count {
            add(UnsafeRawBufferPointer(name).loadUnaligned(fromByteOffset: index, as: UInt64.self))
            index += 8
        }
        var rest: UInt64 = 0
        while index < name.count {
            rest = rest << 8 | UInt64(name[index])
            index += 1
        }
        add(rest)
        return hash
    }
}
