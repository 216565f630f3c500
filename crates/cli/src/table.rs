//! Tables that line up.

/// Rows of cells under a heading: the first column to the left, the others to the right.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(|cell| (*cell).to_owned()).collect()] }
    }

    /// Adds a row. What would break it, such as a new line in the name of a file, is shown as its escape.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| unbroken(&cell)).collect());
    }
}

fn unbroken(cell: &str) -> String {
    let mut shown = String::with_capacity(cell.len());
    for c in cell.chars() {
        match c.is_control() {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (index, row) in self.rows.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                match column {
                    0 => line.push_str(&format!("{cell:<width$}")),
                    _ => line.push_str(&format!("  {cell:>width$}")),
                }
            }
            f.write_str(line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["class", "right"]);
        table.row(["Ankle boot".to_owned(), "7".to_owned()]);
        table.row(["Bag".to_owned(), "123456".to_owned()]);
        let text = table.to_string();
        assert_eq!(text, "class        right\nAnkle boot       7\nBag         123456");
    }

    #[test]
    fn a_row_is_a_line() {
        let mut table = Table::new(&["image", "label"]);
        table.row(["a\nb\u{1b}.png".to_owned(), "Zoë".to_owned()]);
        assert_eq!(table.to_string(), "image           label\na\\nb\\u{1b}.png    Zoë");
    }
}
