// "Did you mean": the declared name that is fewest edits away.

/// The candidate with the smallest edit distance to `name`, if it is near enough to be a slip; ties go to the first in
/// alphabetical order, so that messages are the same every time.
package func nearestName(to name: String, among candidates: [String]) -> String? {
    guard name.utf8.count <= 64 else { return nil }
    // Of a name of one or two letters, one edit is most of it.
    let limit = name.utf8.count < 3 ? 0 : max(1, min(4, name.utf8.count / 3))
    guard limit > 0 else { return nil }
    var best: (distance: Int, name: String)?
    for candidate in candidates.sorted() where abs(candidate.utf8.count - name.utf8.count) <= limit {
        let distance = editDistance(Array(name.utf8), Array(candidate.utf8))
        if distance <= limit, distance < best?.distance ?? Int.max { best = (distance, candidate) }
    }
    return best?.name
}

/// "; did you mean …?" or nothing.
package func suggestion(for name: String, among candidates: [String]) -> String {
    nearestName(to: name, among: candidates).map { "; did you mean '\($0)'?" } ?? ""
}

/// Insertions, deletions, substitutions and swaps of neighbours.
private func editDistance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for i in 0..<left.count {
        var row = [i + 1]
        for j in 0..<right.count {
            var cost = min(row[j] + 1, last[j + 1] + 1, last[j] + (left[i] == right[j] ? 0 : 1))
            if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] { cost = min(cost, beforeLast[j - 1] + 1) }
            row.append(cost)
        }
        beforeLast = last
        last = row
    }
    return last[right.count]
}
