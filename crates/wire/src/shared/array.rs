//! Views of shared buffers as arrays in several dimensions.

use bytemuck::AnyBitPattern;
use ndarray::{ArrayView, Dimension, StrideShape};

use super::{ArrayError, SharedBuf};

impl SharedBuf {
    /// Returns the bytes as an array of this shape, without a copy. Its elements follow each other
    /// in row-major order, unless the shape says otherwise.
    ///
    /// ```
    /// use brigade_wire::shared::SharedBufMut;
    ///
    /// let mut image = SharedBufMut::on_heap(2 * 3 * size_of::<f32>());
    /// image.typed_mut::<f32>()?.copy_from_slice(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    /// let image = image.freeze();
    /// let rows = image.array::<f32, _, _>((2, 3))?;
    /// assert_eq!(rows[[1, 0]], 3.0);
    /// assert!(image.array::<f32, _, _>((3, 3)).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`typed`](Self::typed), or if there are too few elements.
    pub fn array<T, S, D>(&self, shape: S) -> Result<ArrayView<'_, T, D>, ArrayError>
    where
        T: AnyBitPattern,
        S: Into<StrideShape<D>>,
        D: Dimension,
    {
        let elements = self.typed::<T>()?;
        ArrayView::from_shape(shape, elements)
            .map_err(|source| ArrayError::Shape { elements: elements.len(), source })
    }
}
