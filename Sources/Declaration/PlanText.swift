// A plan for people: what is added (+), changed (~) and removed (-).

extension Plan {
    /// Several lines without a final newline; the last one has the counts.
    /// - Parameter isApplied: whether the plan was applied.
    package func text(isApplied: Bool) -> String {
        var lines: [String] = []
        for change in changes {
            lines.append("\(change.kind.rawValue) \(change.item)")
            for field in change.fields where change.kind != .remove {
                let after = field.after ?? "(none)"
                lines.append(
                    "    \(field.name.rawValue): "
                        + (change.kind == .add ? after : "\(field.before ?? "(none)") → \(after)"))
            }
        }
        if !lines.isEmpty { lines.append("") }
        if !kept.isEmpty {
            lines.append("Not in the files, and kept (--prune removes them):")
            lines += kept.map { "    \($0)" }
            lines.append("")
        }
        lines.append(summary(isApplied: isApplied))
        return lines.joined(separator: "\n")
    }

    private func summary(isApplied: Bool) -> String {
        guard !changes.isEmpty else { return "No changes." }
        let (added, changed, removed) = (count(.add), count(.change), count(.remove))
        return isApplied
            ? "\(added) added, \(changed) changed, \(removed) removed."
            : "\(added) to add, \(changed) to change, \(removed) to remove; nothing was changed."
    }
}
