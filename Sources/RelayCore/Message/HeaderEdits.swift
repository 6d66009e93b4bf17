// Edits of a header section: what becomes of each field, and the modifications that bring it about.

import InternetMessage

package struct HeaderEdits: Sendable {
    package enum Edit: Sendable, Hashable {
        case keep
        /// Everything after the colon.
        case replace([UInt8])
        case remove
    }

    package let original: [HeaderField]
    /// One for each field of `original`.
    package var edits: [Edit]
    /// Fields that come to stand above all others, in this order.
    package var inserted: [HeaderField] = []

    package init(_ header: HeaderSection, initially edit: Edit = .keep) {
        original = header.fields
        edits = Array(repeating: edit, count: header.fields.count)
    }

    /// The header section after the edits.
    package var result: HeaderSection {
        var fields = inserted
        for (field, edit) in zip(original, edits) {
            switch edit {
            case .keep: fields.append(field)
            case .replace(let value): fields.append(HeaderField(name: field.name, rawValue: value))
            case .remove: break
            }
        }
        return HeaderSection(fields)
    }

    /// The modifications, in an order in which no deletion shifts an index that is still to be used.
    package var modifications: [Modification] {
        var counts: [String: Int] = [:]
        var changes: [Modification] = []
        for (field, edit) in zip(original, edits) {
            let name = field.name
            // ASCII letters alone, as `isNamed` and the MTA compare.
            let key = name.asciiLowercased
            let index = counts[key, default: 0] + 1
            counts[key] = index
            switch edit {
            case .keep: break
            case .replace(let value): changes.append(.changeHeader(name: name, index: index, rawValue: value))
            case .remove: changes.append(.changeHeader(name: name, index: index, rawValue: nil))
            }
        }
        return changes.reversed() + inserted.reversed().map { .insertHeader(position: 1, field: $0) }
    }
}
