// Edits of a header section: the change of each field, and the resulting modifications.

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
    /// Fields inserted above all others, in this order.
    package var inserted: [HeaderField] = []

    package init(_ header: HeaderSection, initially edit: Edit = .keep) {
        original = header.fields
        edits = Array(repeating: edit, count: header.fields.count)
    }

    /// The name of the first field that the edits make longer than a limit; nil if there is none.
    func firstField(longerThan limit: Int) -> String? {
        for (field, edit) in zip(original, edits) {
            if case .replace(let value) = edit, field.nameLength + 1 + value.count > limit {
                return field.name
            }
        }
        return inserted.first { $0.bytes.count > limit }?.name
    }

    /// The header section after the edits.
    package var result: HeaderSection {
        var fields = inserted
        fields.reserveCapacity(inserted.count + original.count)
        for (field, edit) in zip(original, edits) {
            switch edit {
            case .keep: fields.append(field)
            case .replace(let value): fields.append(HeaderField(name: field.name, rawValue: value))
            case .remove: break
            }
        }
        return HeaderSection(fields)
    }

    /// The modifications, in an order in which no deletion shifts an index that a later one uses.
    package var modifications: [Modification] {
        // Folds ASCII letters only, as the MTA does when it compares names.
        let names = FieldNameIndex(original)
        var changes: [Modification] = []
        changes.reserveCapacity(original.count + inserted.count)
        for position in original.indices.reversed() {
            switch edits[position] {
            case .keep: break
            case .replace(let value):
                changes.append(
                    .changeHeader(
                        name: original[position].name, index: names.ordinal(position),
                        rawValue: value))
            case .remove:
                changes.append(
                    .changeHeader(
                        name: original[position].name, index: names.ordinal(position), rawValue: nil
                    ))
            }
        }
        for field in inserted.reversed() {
            changes.append(.insertHeader(position: 1, field: field))
        }
        return changes
    }
}
